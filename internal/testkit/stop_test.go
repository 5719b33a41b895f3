package testkit_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"

	"postern/internal/testkit"
)

// When the server stops, streams end soon, and a request that takes longer than they may is answered.
func TestStopEndsStreamsBeforeOtherRequests(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	stream := openStream(t, k, c, "")
	defer stream.Body.Close()
	content, upload := io.Pipe()
	begun, answer := make(chan struct{}), make(chan int, 1)
	req := uploading(t, k, c, content, func() { close(begun) })
	go func() { answer <- statusOf(t, req) }()
	<-begun
	stopped := make(chan struct{})
	go func() { defer close(stopped); k.Stop() }()
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
	if _, err := io.WriteString(upload, "17 apples\n"); err != nil {
		t.Error(err)
	}
	_ = upload.Close()
	if status := <-answer; status != http.StatusCreated {
		t.Errorf("the upload = %d, want 201", status)
	}
	<-stopped
}

// uploading returns the request that uploads a file. It calls begun when the server reads the content.
func uploading(t *testing.T, k *testkit.Kit, c *testkit.Client, content io.Reader, begun func()) *http.Request {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: begun})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL()+"/v1/media?filename=a.txt", content)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	req.Header.Set("Expect", "100-continue")
	return req
}

// statusOf makes a request and returns the status of the answer, or 0 if there is none.
func statusOf(t *testing.T, req *http.Request) int {
	t.Helper()
	res, err := testkit.Transport.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}
