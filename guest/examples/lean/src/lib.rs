//! Halves the imports of a guest that does not print: `use lean as _;` is all it takes.
//!
//! The standard library's panic handler prints through wasi-libc, which brings 19 imports of wasi:cli and
//! wasi:io with it, and a host resolves each of them in every new instance. The linker takes a function
//! from wasi-libc only if nobody else defines it, so the three that the handler calls are defined here. A
//! panic then traps without a message. A guest that prints, or reads its environment, must not use this.

#[cfg(target_arch = "wasm32")]
mod libc {
    use core::arch::wasm32;
    use core::ffi::{c_char, c_int, c_void};
    use core::ptr;

    /// Takes everything and keeps nothing.
    #[unsafe(no_mangle)]
    extern "C" fn write(_descriptor: c_int, _bytes: *const c_void, length: usize) -> isize {
        length.cast_signed()
    }

    /// There is no environment.
    #[unsafe(no_mangle)]
    extern "C" fn getenv(_name: *const c_char) -> *mut c_char {
        ptr::null_mut()
    }

    #[unsafe(no_mangle)]
    extern "C" fn abort() -> ! {
        wasm32::unreachable()
    }
}
