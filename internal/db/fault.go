package db

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// UnavailableError means that the database cannot do its work now: the disk is full,
// the connection is lost, or the server is stopping. The same call may succeed later.
type UnavailableError struct {
	Detail string // for callers; it says nothing about the connection
	Wait   bool   // whether trying again after a moment makes sense
}

func (e *UnavailableError) Error() string { return e.Detail }

func fails(detail string) error { return &UnavailableError{Detail: detail, Wait: true} }

// unavailable turns a failing disk or a lost connection into an [UnavailableError],
// without what the driver's error says about the connection.
func unavailable(err error) error {
	var known *UnavailableError
	if err == nil || errors.As(err, &known) {
		return err
	}
	if isDisconnect(err) {
		return fmt.Errorf("%w (%w)", fails("the storage cannot be reached now"), errors.New(disconnectText(err)))
	}
	if mayRecover(err) {
		return fmt.Errorf("%w (%w)", fails("the storage cannot be written now"), err)
	}
	return err
}

// mayRecover tells whether a statement failed because of the database itself and
// not because of the statement.
func mayRecover(err error) bool {
	if se, ok := errors.AsType[*sqlite.Error](err); ok {
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY,
			sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM:
			return true
		}
		return false
	}
	pe, ok := errors.AsType[*pgconn.PgError](err)
	return ok && codeMayPass(pe.Code)
}

// lockNotAvailable is PostgreSQL's code for a lock that was not free in time.
const lockNotAvailable = "55P03"

// codeMayPass classifies PostgreSQL's error codes (its manual, appendix A).
func codeMayPass(code string) bool {
	switch code {
	case "40001", "40P01", // serialization failure, deadlock
		"25006",                   // read-only: a standby after a failover
		lockNotAvailable, "57014": // a lock or the statement took too long
		return true
	}
	for _, class := range []string{"08", "53", "57P", "58"} { // connection, resources, operator, system
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}

// isDisconnect tells whether err is about the connection to PostgreSQL.
func isDisconnect(err error) bool {
	var ce *pgconn.ConnectError
	var ne net.Error
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok && pe.SeverityUnlocalized == "FATAL" {
		return true // it ends the session
	}
	return errors.As(err, &ce) || errors.As(err, &ne) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// disconnectText says why the database cannot be reached, in our own words: the
// driver's name user, host and database.
func disconnectText(err error) string {
	var (
		pe    *pgconn.PgError
		errno syscall.Errno
		dns   *net.DNSError
		ne    net.Error
	)
	switch {
	case errors.As(err, &pe):
		return refusedText(pe.Code)
	case errors.As(err, &dns):
		return "its host name cannot be resolved"
	case errors.As(err, &errno):
		return errno.Error()
	case isTLS(err):
		return "the TLS handshake failed; see sslmode and sslrootcert in the database URL"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return "it does not respond in time"
	}
	return "the connection was closed"
}

func refusedText(code string) string {
	switch code {
	case "28P01", "28000":
		return "it refuses the user or password of the database URL"
	case "3D000":
		return "it has no database of the name in the database URL"
	case "53300":
		return "it has no free connection; raise max_connections"
	}
	return "it responds with error code " + code
}

func isTLS(err error) bool {
	var (
		record    tls.RecordHeaderError
		alert     tls.AlertError
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
	)
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verify) || errors.As(err, &authority) ||
		errors.As(err, &host) ||
		strings.Contains(err.Error(), "server refused TLS")
}
