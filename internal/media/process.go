package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"postern/internal/postern"
)

// demuxer is the container that ffmpeg may open, by the type that we sniffed; "" means none.
// ffmpeg is told which one it is and never guesses: otherwise a playlist, which names other
// files and addresses, would be followed.
func demuxer(mimeType string) string {
	switch mimeType {
	case "video/mp4", "video/3gpp", "video/quicktime", "audio/mp4":
		return "mov"
	case "video/webm":
		return "matroska"
	case "audio/ogg", "video/ogg":
		return "ogg"
	case "audio/mpeg":
		return "mp3"
	case "audio/aac", "audio/amr", "audio/wav", "audio/flac", "audio/aiff":
		return strings.TrimPrefix(mimeType, "audio/")
	}
	return ""
}

// errNoFFmpeg is about a server that lacks a program.
func errNoFFmpeg() error {
	return postern.Invalid("/media", "this server has no ffmpeg, which is needed for videos and voice messages; "+
		"send the file as a document, or ask the operator to install ffmpeg")
}

// source is the part of a command line that opens a file for reading. The path is ours;
// "file:" keeps it from being read as another protocol.
func source(path, mimeType string) []string {
	args := []string{"-threads", "1", "-max_pixels", strconv.Itoa(maxVideo), "-protocol_whitelist", "file"}
	container := demuxer(mimeType)
	if container == "mov" { // may refer to other files
		args = append(args, "-enable_drefs", "0", "-use_absolute_path", "0")
	}
	return append(args, "-f", container, "-i", "file:"+path)
}

// runFFmpeg runs ffmpeg; run says how.
func (c *Converter) runFFmpeg(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	common := []string{"-v", "error", "-hide_banner", "-nostdin", "-max_alloc", strconv.Itoa(maxAllocation)}
	return c.run(ctx, c.ffmpeg, in, out, append(common, args...))
}

// run starts a program and waits for its end. It has an empty environment, no file but
// those it is named, and at most the Converter's timeout. An error of the reason
// ValidationFailed means that the file is at fault.
func (c *Converter) run(ctx context.Context, program string, in io.Reader, out io.Writer, args []string) error {
	if !c.HasFFmpeg() {
		return errNoFFmpeg()
	}
	leave, err := c.processes.Enter(ctx, c.workspace)
	if err != nil {
		return err
	}
	defer leave()
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	complaint := &tail{}
	cmd := exec.CommandContext(limited, program, args...) //nolint:gosec // see demuxer and source
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, complaint
	cmd.Env = []string{"LC_ALL=C"} // without our secrets
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return postern.Invalid("/media", "the file takes too long to process; it can be sent as a document")
	}
	if b, ok := out.(*bounded); ok && b.left < 0 {
		return postern.Invalid("/media", "the file becomes too large when it is converted; send it as a document")
	}
	return verdict(err, complaint)
}

// errProgram means that a program ended with an error.
var errProgram = errors.New("the program reported an error")

// verdict tells a program that did not like the file from one that could not run.
func verdict(err error, complaint *tail) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return fmt.Errorf("%w: %w: %s", errDamaged(), errProgram, complaint)
	}
	return fmt.Errorf("ffmpeg: %w (%s)", err, complaint)
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - maxComplaint; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(bytes.TrimSpace(t.kept)) }

// bounded is a writer that takes no more than left bytes. When it refuses, left is negative,
// and the program that writes ends.
type bounded struct {
	w    io.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, io.ErrShortWrite
	}
	return b.w.Write(p)
}
