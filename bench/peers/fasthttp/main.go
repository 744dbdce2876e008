// peer-fasthttp answers the routes of the benchmarks natively, with Go and fasthttp.
//
// The answers are those of guest/fixtures/work-logic, byte for byte; bench/peers/check compares them. It is
// built with what Debian 12 has, without modules: Go 1.19 and fasthttp 1.31.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

const (
	blockSize = 64 * 1024
	chunkSize = 1024

	get  = "GET, HEAD"
	post = "POST"

	text   = "text/plain; charset=utf-8"
	octets = "application/octet-stream"
)

var block = bytes.Repeat([]byte{'x'}, blockSize)

var buffers = sync.Pool{New: func() any {
	buffer := make([]byte, blockSize)
	return &buffer
}}

type greeting struct {
	Test string
}

type order struct {
	ID   uint64   `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
	Text string   `json:"text"`
}

func main() {
	port := flag.Uint("port", 8080, "0: chosen by the system")
	flag.Parse()
	if err := serve(*port); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(port uint) error {
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s/\n", listener.Addr())
	server := fasthttp.Server{
		Handler: handle,
		// The guests send neither. The date stays: every server here sends one.
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		// Uploads are counted as they arrive instead of being held in memory.
		StreamRequestBody: true,
	}
	return server.Serve(listener)
}

func handle(ctx *fasthttp.RequestCtx) {
	// Not ctx.Path(), which has decoded the escapes already.
	path, _, _ := strings.Cut(string(ctx.RequestURI()), "?")
	switch path {
	case "/":
		if allows(ctx, get) {
			respond(ctx, fasthttp.StatusOK, "Hello, World!")
		}
	case "/json":
		if allows(ctx, post) {
			nextOrder(ctx)
		}
	case "/upload":
		if allows(ctx, post) {
			upload(ctx)
		}
	default:
		if user, found := after(path, "/hello/"); found {
			if allows(ctx, get) {
				hello(ctx, user)
			}
		} else if bytes, found := number(path, "/download/"); found {
			if allows(ctx, get) {
				download(ctx, bytes)
			}
		} else if chunks, found := number(path, "/stream/"); found {
			if allows(ctx, get) {
				stream(ctx, chunks)
			}
		} else if ms, found := number(path, "/slow/"); found {
			if allows(ctx, get) {
				slow(ctx, ms)
			}
		} else {
			respond(ctx, fasthttp.StatusNotFound, "not found\n")
		}
	}
}

// after is the one segment behind the prefix.
func after(path, prefix string) (string, bool) {
	if !strings.HasPrefix(path, prefix) {
		return "", false
	}
	segment := path[len(prefix):]
	return segment, segment != "" && strings.IndexByte(segment, '/') < 0
}

func number(path, prefix string) (int64, bool) {
	segment, found := after(path, prefix)
	if !found {
		return 0, false
	}
	number, err := strconv.ParseUint(segment, 10, 63)
	return int64(number), err == nil
}

// allows answers 405 if the method is none of those.
func allows(ctx *fasthttp.RequestCtx, methods string) bool {
	if methods == post && ctx.IsPost() || methods == get && (ctx.IsGet() || ctx.IsHead()) {
		return true
	}
	respond(ctx, fasthttp.StatusMethodNotAllowed, "method not allowed\n")
	ctx.Response.Header.Set("allow", methods)
	return false
}

func hello(ctx *fasthttp.RequestCtx, segment string) {
	user, err := url.PathUnescape(segment)
	if err != nil || !utf8.ValidString(user) {
		respond(ctx, fasthttp.StatusBadRequest, "the user is not percent-encoded UTF-8\n")
		return
	}
	ctx.SetContentType(text)
	// The encoder ends with a newline, as the guests do.
	if err := encoder(ctx).Encode(greeting{"Hello " + user}); err != nil {
		respond(ctx, fasthttp.StatusInternalServerError, "internal error\n")
	}
}

func nextOrder(ctx *fasthttp.RequestCtx) {
	var this order
	if err := json.Unmarshal(ctx.PostBody(), &this); err != nil {
		respond(ctx, fasthttp.StatusBadRequest, "the body is no order\n")
		return
	}
	this.ID++
	var next bytes.Buffer
	if err := encoder(&next).Encode(this); err != nil {
		respond(ctx, fasthttp.StatusInternalServerError, "internal error\n")
		return
	}
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(bytes.TrimSuffix(next.Bytes(), []byte{'\n'}))
}

// encoder writes JSON without escapes for HTML.
func encoder(to io.Writer) *json.Encoder {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder
}

func upload(ctx *fasthttp.RequestCtx) {
	var bytes int64
	if body := ctx.RequestBodyStream(); body != nil {
		buffer := buffers.Get().(*[]byte)
		defer buffers.Put(buffer)
		for {
			count, err := body.Read(*buffer)
			bytes += int64(count)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				respond(ctx, fasthttp.StatusBadRequest, "the body broke off\n")
				ctx.SetConnectionClose()
				return
			}
		}
	}
	respond(ctx, fasthttp.StatusOK, strconv.FormatInt(bytes, 10)+"\n")
}

func download(ctx *fasthttp.RequestCtx, bytes int64) {
	ctx.SetContentType(octets)
	ctx.SetBodyStream(&filling{bytes}, int(bytes))
}

// filling is so many bytes; fasthttp has it write itself, which takes blocks instead of 4 KiB at a time.
type filling struct {
	left int64
}

func (f *filling) Read(into []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	count := copy(into, f.next())
	f.left -= int64(count)
	return count, nil
}

func (f *filling) WriteTo(to io.Writer) (int64, error) {
	var written int64
	for f.left > 0 {
		count, err := to.Write(f.next())
		f.left -= int64(count)
		written += int64(count)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func (f *filling) next() []byte {
	if f.left < blockSize {
		return block[:f.left]
	}
	return block
}

func stream(ctx *fasthttp.RequestCtx, chunks int64) {
	ctx.SetContentType(octets)
	ctx.SetBodyStreamWriter(func(to *bufio.Writer) {
		for ; chunks > 0; chunks-- {
			if _, err := to.Write(block[:chunkSize]); err != nil {
				return
			}
			if err := to.Flush(); err != nil {
				return
			}
		}
	})
}

func slow(ctx *fasthttp.RequestCtx, ms int64) {
	time.Sleep(time.Duration(ms) * time.Millisecond)
	respond(ctx, fasthttp.StatusOK, fmt.Sprintf("slow %d\n", ms))
}

func respond(ctx *fasthttp.RequestCtx, status int, body string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType(text)
	ctx.SetBodyString(body)
}
