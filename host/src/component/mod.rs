//! From a file to something that can be instantiated: read, checked (`check`, `facts`), compiled or taken from the
//! cache (`cache`), linked, and tried once. Never on the request path. Start with [`Loader::load`].

mod cache;
mod check;
mod facts;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime_wasi_http::p2::bindings::ProxyPre;
use wasmtime_wasi_http::p3::bindings::ServicePre;

use self::cache::Cache;
use self::facts::Facts;
use crate::capability::{self, State};
use crate::config::{CacheConfig, GuestConfig};
use crate::engine::{self, GuestEngine, InstanceNeeds, PoolPlan, Ticker, Wasi};
use crate::error::{LoadError, LoadProblem};
use crate::telemetry::progress::Compiling;

/// A component that is ready to be instantiated.
pub(crate) enum Ready {
    /// Exports `wasi:http/incoming-handler@0.2.x`.
    P2(ProxyPre<State>),
    /// Exports `wasi:http/handler@0.3.x`. One that exports both is this, as in `wasmtime serve`.
    P3(ServicePre<State>),
}

/// What [`Loader::load`] makes of a file.
pub(crate) struct Loaded {
    pub(crate) ready: Ready,
    pub(crate) engine: GuestEngine,
}

/// Turns files into guests.
#[derive(Debug)]
pub(crate) struct Loader {
    cache: Option<Cache>,
    ticker: Ticker,
    requests: usize,
}

/// A component's bytes and what they tell. A precompiled file tells nothing.
#[derive(Clone)]
struct Source {
    bytes: Bytes,
    facts: Option<Facts>,
}

impl Loader {
    /// A loader for a host that admits `requests` at once.
    pub(crate) fn new(cache: &CacheConfig, ticker: Ticker, requests: usize) -> Self {
        let cache = match cache {
            CacheConfig::Off | CacheConfig::Unset => None,
            CacheConfig::Folder(folder) => Cache::open(folder),
        };
        Self {
            cache,
            ticker,
            requests,
        }
    }

    /// Reads, compiles, links and tries a component.
    pub(crate) async fn load(self: &Arc<Self>, guest: &GuestConfig) -> Result<Loaded, LoadError> {
        let loader = Arc::clone(self);
        let config = guest.clone();
        let compiled = tokio::task::spawn_blocking(move || loader.compile(&config)).await;
        let result = match compiled {
            Ok(Ok(compiled)) => self.try_out(guest, compiled).await,
            Ok(Err(problem)) => Err(problem),
            Err(error) => Err(LoadProblem::Invalid(error.to_string())),
        };
        result.map_err(|problem| LoadError {
            path: guest.component.clone(),
            problem,
        })
    }

    fn compile(&self, guest: &GuestConfig) -> Result<Compiled, LoadProblem> {
        let source = check::read(&guest.component, guest.allow_precompiled)?;
        let Some(facts) = source.facts else {
            // The file does not tell which engine it was made for; the other one refuses it.
            let usual = InstanceNeeds::default();
            let again = source.clone();
            return self
                .compile_for(guest, source, Wasi::P3, usual)
                .or_else(|_refusal| self.compile_for(guest, again, Wasi::P2, usual));
        };
        check::limits(&facts, &guest.limits)?;
        self.compile_for(guest, source, facts.wasi, facts.needs)
    }

    fn compile_for(
        &self,
        guest: &GuestConfig,
        source: Source,
        wasi: Wasi,
        needs: InstanceNeeds,
    ) -> Result<Compiled, LoadProblem> {
        let plan = PoolPlan::new(self.requests, guest.limits.memory, needs);
        let engine = engine::build(wasi, &plan, &self.ticker)
            .map_err(|error| LoadProblem::Engine(format!("{error:#}")))?;
        let component = self.component(&guest.component, &source, &engine.engine)?;
        let seen = check::needs(&component);
        if engine.pooled && !needs.cover(seen) {
            drop((component, engine));
            return self.compile_for(guest, source, wasi, needs.union(seen));
        }
        // Later instances share this image instead of building it on the first request.
        component
            .initialize_copy_on_write_image()
            .map_err(|error| LoadProblem::Invalid(check::one_line(&error)))?;
        Ok(Compiled {
            engine,
            component,
            wasi,
            needs,
            source,
        })
    }

    fn component(
        &self,
        path: &Path,
        source: &Source,
        engine: &Engine,
    ) -> Result<Component, LoadProblem> {
        if source.facts.is_none() {
            return cache::deserialize_precompiled(engine, &source.bytes)
                .map_err(|error| LoadProblem::Precompiled(check::one_line(&error)));
        }
        if let Some(component) = self
            .cache
            .as_ref()
            .and_then(|cache| cache.get(engine, &source.bytes))
        {
            return Ok(component);
        }
        let progress = Compiling::begin(path, source.bytes.len());
        let component = Component::from_binary(engine, &source.bytes)
            .map_err(|error| LoadProblem::Invalid(check::one_line(&error)))?;
        progress.done();
        if let Some(cache) = &self.cache {
            cache.put(engine, &source.bytes, &component);
        }
        Ok(component)
    }

    /// Links the component and makes its first instance, which also shows what each one takes from the pool.
    async fn try_out(
        self: &Arc<Self>,
        guest: &GuestConfig,
        compiled: Compiled,
    ) -> Result<Loaded, LoadProblem> {
        let (ready, used) = compiled.link_and_start(guest).await?;
        if !compiled.engine.pooled || compiled.needs.cover(used) {
            return Ok(Loaded {
                ready,
                engine: compiled.engine,
            });
        }
        let Compiled {
            source,
            wasi,
            needs,
            ..
        } = compiled;
        drop(ready);
        let loader = Arc::clone(self);
        let config = guest.clone();
        let again = tokio::task::spawn_blocking(move || {
            loader.compile_for(&config, source, wasi, needs.union(used))
        });
        let compiled = match again.await {
            Ok(compiled) => compiled?,
            Err(error) => return Err(LoadProblem::Invalid(error.to_string())),
        };
        let (ready, _) = compiled.link_and_start(guest).await?;
        Ok(Loaded {
            ready,
            engine: compiled.engine,
        })
    }
}

/// A component in its engine, not yet linked.
struct Compiled {
    engine: GuestEngine,
    component: Component,
    wasi: Wasi,
    needs: InstanceNeeds,
    source: Source,
}

impl Compiled {
    async fn link_and_start(
        &self,
        guest: &GuestConfig,
    ) -> Result<(Ready, InstanceNeeds), LoadProblem> {
        let mut linker = Linker::<State>::new(&self.engine.engine);
        capability::link(&mut linker, self.wasi)
            .map_err(|error| LoadProblem::Engine(check::one_line(&error)))?;
        check::imports(&self.component, &linker)?;
        let pre = linker
            .instantiate_pre(&self.component)
            .map_err(|error| check::link_error(&error))?;
        let used = self.warm_up(guest, &pre).await?;
        let ready = if check::exports(&self.component, Wasi::P3.handler()) {
            ServicePre::new(pre).map(Ready::P3)
        } else {
            ProxyPre::new(pre).map(Ready::P2)
        };
        let ready = ready.map_err(|error| LoadProblem::NoHandler(check::one_line(&error)))?;
        Ok((ready, used))
    }

    async fn warm_up(
        &self,
        guest: &GuestConfig,
        pre: &InstancePre<State>,
    ) -> Result<InstanceNeeds, LoadProblem> {
        let failed = |error: String| LoadProblem::WarmUp(error);
        // Nobody else uses this engine yet, so the pool has a place.
        let state = State::new(guest.name.as_str().into(), &guest.limits);
        let mut store = state.into_store(&self.engine.engine);
        let start = pre.instantiate_async(&mut store);
        match guest.limits.wall {
            Some(wall) => match tokio::time::timeout(wall, start).await {
                Ok(instance) => instance,
                Err(_) => return Err(failed(format!("not ready after {wall:?}"))),
            },
            None => start.await,
        }
        .map_err(|error| failed(check::one_line(&error)))?;
        Ok(check::used(&self.engine.engine))
    }
}
