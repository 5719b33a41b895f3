package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
)

// NewServer returns a server with the deadlines and limits that every listener
// of ours has. The context of each request derives from requests, so that its
// end ends every request.
func NewServer(requests context.Context, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		// With HTTP/2, the deadlines of responses do not end a connection whose client reads nothing.
		HTTP2:          &http.HTTP2Config{WriteByteTimeout: writeTimeout},
		MaxHeaderBytes: MaxHeaderBytes,
		BaseContext:    func(net.Listener) context.Context { return requests },
		ConnContext:    withConn,
		ConnState:      connState,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
