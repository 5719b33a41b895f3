package api_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// allow changes how many MiB of files the workspace may store.
func (t *tenant) allow(mib int) {
	t.t.Helper()
	change := postern.Limits{StorageMiB: &mib}
	if _, err := t.g.Workspaces.ChangeLimits(t.t.Context(), access.Operator(), t.ws, change); err != nil {
		t.t.Fatal(err)
	}
}

// bytesStored returns the bytes in the storage and those that are counted.
func (t *tenant) bytesStored() (bytes, counted int64) {
	t.t.Helper()
	for info, err := range t.blobs.Walk(t.t.Context()) {
		if err != nil {
			t.t.Fatal(err)
		}
		if info.Workspace == t.ws {
			bytes += info.Size
		}
	}
	u, err := t.db.Blobs.Storage(t.t.Context(), t.ws)
	if err != nil {
		t.t.Fatal(err)
	}
	return bytes, u.Used
}

// random is a file of n bytes that is like no other.
func random(n int64) io.Reader { return io.LimitReader(rand.Reader, n) }

const kib = 1 << 10

// Beyond the plan's bytes nothing is stored, in whatever way it comes; and what is deleted makes room.
func TestStoredFilesHaveALimit(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url func(testing.TB) string) {
		mine := newServerOn(t, url(t), fakeSandbox{}).tenant("starter")
		device := connected(mine)
		mine.allow(1)
		first := mine.put(random(700*kib), -1)
		first.want(http.StatusCreated, "")
		message := func(media string) *answerT {
			return mine.do("POST", "/v1/messages",
				`{"deviceId":"`+device+`","to":"+15551234567","type":"document","media":`+media+`}`)
		}
		refused := func(what string, a *answerT) {
			t.Helper()
			p := a.want(http.StatusForbidden, postern.ResourceLimit)
			if !strings.Contains(p.Detail, "allows 1 MiB of stored files") || !strings.Contains(p.Detail, "delete") {
				t.Errorf("%s: %s", what, p.Detail)
			}
		}
		inline := `{"data":"` + strings.Repeat("QUFB", 110*kib) + `","mimeType":"text/plain","filename":"a.txt"}`
		refused("an announced file", mine.put(random(400*kib), 400*kib))
		refused("a file of unknown length", mine.put(random(400*kib), -1))
		refused("a file in a message", message(inline))
		if bytes, counted := mine.bytesStored(); bytes != 700*kib || counted != 700*kib {
			t.Errorf("%d bytes are stored and %d counted, want 700 KiB", bytes, counted)
		}
		mine.put(random(324*kib), -1).want(http.StatusCreated, "")
		refused("one byte more", mine.put(random(1), -1))
		refused("a file at a URL", message(`{"url":"https://files.test/a","filename":"a.txt"}`))
		want := `"storage":{"used":1048576,"limit":1048576}`
		if got := mine.usage(); !strings.Contains(got, want) {
			t.Errorf("usage is %s, want %s", got, want)
		}
		mine.do("DELETE", "/v1/media/"+first.member("id"), "").want(http.StatusNoContent, "")
		if bytes, counted := mine.bytesStored(); bytes != 324*kib || counted != 324*kib {
			t.Errorf("after a deletion %d bytes are stored and %d counted, want 324 KiB", bytes, counted)
		}
		message(inline).want(http.StatusAccepted, "")
	})
}

// Uploads at the same time do not pass the limit together, and leave nothing of those that are
// refused.
func TestUploadsDoNotPassTheLimitTogether(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url func(testing.TB) string) {
		mine := newServerOn(t, url(t), fakeSandbox{}).tenant("starter")
		mine.allow(1)
		var mu sync.Mutex
		var seen []int
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				a := mine.put(random(300*kib), -1)
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, a.Code)
			})
		}
		wg.Wait()
		slices.Sort(seen)
		if got, want := fmt.Sprint(seen), "[201 201 201 403 403 403 403 403]"; got != want {
			t.Errorf("the uploads are answered %s, want %s", got, want)
		}
		if bytes, counted := mine.bytesStored(); bytes != 900*kib || counted != 900*kib {
			t.Errorf("%d bytes are stored and %d counted, want 900 KiB", bytes, counted)
		}
	})
}

// A repeated upload is answered as before when there is no room any more, and another body under the
// same key leaves nothing.
func TestUploadIsRepeatedWithoutRoom(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	mine.allow(1)
	post := func(content string) *answerT {
		return mine.do("POST", "/v1/media?filename=a.txt", content, "Idempotency-Key", "one")
	}
	first := post(strings.Repeat("a", 1<<20))
	first.want(http.StatusCreated, "")
	again := post(strings.Repeat("a", 1<<20))
	again.want(http.StatusCreated, "")
	if again.Body.String() != first.Body.String() || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("repeated: %s", again.Body)
	}
	post(strings.Repeat("b", 1<<20)).want(http.StatusUnprocessableEntity, postern.IdempotencyReused)
	mine.do("DELETE", "/v1/media/"+first.member("id"), "").want(http.StatusNoContent, "")
	post(strings.Repeat("a", 1<<20)).want(http.StatusCreated, "")
	if bytes, counted := mine.bytesStored(); bytes != 0 || counted != 0 {
		t.Errorf("%d bytes are stored and %d counted, want none", bytes, counted)
	}
}

// A content that two files have is removed with the second one.
func TestDeletedFileKeepsTheBytesOfAnother(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	one, two := mine.keep("Hello", "a.txt"), mine.keep("Hello", "b.txt")
	for i, id := range []string{one, two} {
		mine.do("GET", "/v1/media/"+id+"/content", "").want(http.StatusOK, "")
		mine.do("DELETE", "/v1/media/"+id, "").want(http.StatusNoContent, "")
		if bytes, counted := mine.bytesStored(); bytes != int64(5-5*i) || counted != bytes {
			t.Errorf("after %d deletions %d bytes are stored and %d counted", i+1, bytes, counted)
		}
	}
}

// A key that is limited to certain devices sees no stored files, and is told the plan's limit.
func TestLimitedKeySeesNoStorage(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	d := mine.device("d", postern.Connected)
	mine.keep("Hello", "a.txt")
	limited := mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{d}}))
	if got := limited.usage(); strings.Contains(got, "storage") {
		t.Errorf("usage is %s", got)
	}
	if a := limited.do("GET", "/v1/me", ""); !strings.Contains(a.Body.String(), `"storage":10737418240`) {
		t.Errorf("me is %s", a.Body)
	}
}

// A message that is refused leaves nothing of the file in it.
func TestRefusedMessageLeavesNoFile(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url func(testing.TB) string) {
		mine := newServerOn(t, url(t), fakeSandbox{}).tenant("growth")
		offline, device := mine.device("d", postern.Disconnected), connected(mine)
		send := func(device, kind, content string) *answerT {
			return mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"+15551234567","type":"`+kind+
				`","media":{"data":"`+content+`","mimeType":"text/plain","filename":"a.txt"}}`)
		}
		send(string(offline), "document", "QUFB").want(http.StatusConflict, postern.DeviceNotConnected)
		send(device, "image", "QkJC").want(http.StatusUnprocessableEntity, postern.ValidationFailed)
		if bytes, counted := mine.bytesStored(); bytes != 0 || counted != 0 {
			t.Errorf("%d bytes are stored and %d counted, want none", bytes, counted)
		}
		send(device, "document", "Q0ND").want(http.StatusAccepted, "")
		if bytes, counted := mine.bytesStored(); bytes != 3 || counted != 3 {
			t.Errorf("%d bytes are stored and %d counted, want 3", bytes, counted)
		}
	})
}
