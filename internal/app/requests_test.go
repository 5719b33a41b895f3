package app

import "testing"

// The log of API requests names no people, who may want to be erased.
func TestLoggedPathsNameNoPeople(t *testing.T) {
	t.Parallel()
	const id = "01M8JYM6NPRTP56ZDCA3N598QC"
	for path, want := range map[string]string{
		"/v1/messages":           "/v1/messages",
		"/v1/messages/msg_" + id: "/v1/messages/msg_" + id,
		"/v1/devices/dev_" + id + "/chats/+15551234567/read":               "/v1/devices/dev_" + id + "/chats/…/read",
		"/v1/devices/dev_" + id + "/blocked/lid:123456789012345":           "/v1/devices/dev_" + id + "/blocked/…",
		"/v1/devices/dev_" + id + "/groups/group:120363041234567890/leave": "/v1/devices/dev_" + id + "/groups/…/leave",
		"/v1/Ada Lovelace": "/v1/…",
		"":                 "",
	} {
		if got := withoutPeople(path); got != want {
			t.Errorf("%q is logged as %q, want %q", path, got, want)
		}
	}
}
