package testkit_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waSyncAction"
)

// labels returns the labels of the device, each as its name and color.
func (v conversing) labels() (list []string) {
	v.t.Helper()
	for _, l := range v.labelList() {
		list = append(list, fmt.Sprint(l.Name, " ", l.Color))
	}
	return list
}

func (v conversing) labelList() []postern.Label {
	v.t.Helper()
	var all struct{ Data []postern.Label }
	v.c.Call("GET", path(v.d, "/labels"), nil, 200, &all)
	return all.Data
}

// labelsAre waits until the device has certain labels.
func (v conversing) labelsAre(want ...string) {
	v.t.Helper()
	testkit.Eventually(v.t, fmt.Sprintf("labels %q", want), func() (bool, any) {
		got := v.labels()
		return slices.Equal(got, want), got
	})
}

// labeled waits until a chat has certain labels, by name.
func (v conversing) labeled(chat string, want ...string) {
	v.t.Helper()
	testkit.Eventually(v.t, fmt.Sprintf("%s has the labels %q", chat, want), func() (bool, any) {
		got := labelNames(v.chat(chat))
		return slices.Equal(got, want), got
	})
}

func labelNames(c postern.Chat) (names []string) {
	for _, l := range c.Labels {
		names = append(names, l.Name)
	}
	return names
}

// onPhone returns a label as the phone shows it; ok is false if it does not.
func (v conversing) onPhone(id string) (one vendorsim.PhoneLabel, ok bool) {
	v.t.Helper()
	list, err := v.k.Vendor.PhoneLabels().List(phone)
	if err != nil {
		v.t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(l vendorsim.PhoneLabel) bool { return l.ID == id })
	if i < 0 {
		return one, false
	}
	return list[i], true
}

// newLabel makes a label.
func (v conversing) newLabel(name string, color int) (l postern.Label) {
	v.t.Helper()
	v.c.Call("POST", path(v.d, "/labels"), map[string]any{"name": name, "color": color}, 201, &l)
	return l
}

// does makes sure that the phone of a test can do something.
func does(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Labels that are made here are on the phone, also when the phone changes something at the same time. Chats are listed with
// their labels, and by them.
func TestChatsHaveLabels(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		v := newConversing(t, k)
		v.write(ann, 1)
		v.write(reader, 1)
		for range 3 {
			does(t, k.Vendor.Fault(t.Context(), phone, vendorsim.FaultStateConflict))
		}
		customer, paid := v.newLabel("New customer", 3), v.newLabel("Paid", 0)
		v.labelsAre("New customer 3", "Paid 0")
		put := path(v.d, "/chats/"+ann+"/labels/")
		var chat postern.Chat
		v.c.Call("PUT", put+customer.ID, nil, 200, &chat)
		if got := labelNames(chat); !slices.Equal(got, []string{"New customer"}) || chat.LatestMessage == nil {
			t.Errorf("the chat has %q, %+v", got, chat)
		}
		v.c.Call("PUT", put+customer.ID, nil, 200, nil)
		v.c.Call("PUT", put+paid.ID, nil, 200, nil)
		v.c.Call("PUT", path(v.d, "/chats/"+reader+"/labels/"+paid.ID), nil, 200, nil)
		if l, _ := v.onPhone(paid.ID); l.Name != "Paid" || !slices.Equal(l.Chats, []string{reader, ann}) {
			t.Errorf("the phone shows %+v", l)
		}
		at := "?deviceId=" + string(v.d.ID) + "&label="
		if got := v.list(at + customer.ID); !slices.Equal(got, []string{ann}) {
			t.Errorf("new customers are %q", got)
		}
		if got := v.list(at + paid.ID); !slices.Equal(got, []string{reader, ann}) {
			t.Errorf("paid are %q", got)
		}
		if got := v.list(at + "none"); len(got) != 0 {
			t.Errorf("without a label there are %q", got)
		}
		if got := v.list("?label=" + customer.ID); !slices.Equal(got, []string{ann}) {
			t.Errorf("of all devices, new customers are %q", got)
		}
		if got := v.labelsListed(); !slices.Equal(got, []string{"Paid", "New customer, Paid"}) {
			t.Errorf("the chats are listed with %q", got)
		}

		v.c.Call("PATCH", path(v.d, "/labels/"+customer.ID), map[string]any{"name": "Customer"}, 200, &customer)
		if customer.Name != "Customer" || customer.Color != 3 {
			t.Errorf("the label is %+v", customer)
		}
		v.labeled(ann, "Customer", "Paid")
		v.c.Call("DELETE", put+paid.ID, nil, 200, &chat)
		if got := labelNames(chat); !slices.Equal(got, []string{"Customer"}) {
			t.Errorf("the chat has %q", got)
		}
		v.c.Call("DELETE", path(v.d, "/labels/"+paid.ID), nil, 204, nil)
		v.labelsAre("Customer 3")
		v.labeled(reader)
		if l, ok := v.onPhone(paid.ID); ok {
			t.Errorf("the phone shows a deleted label %+v", l)
		}
		v.c.Call("DELETE", path(v.d, "/labels/"+paid.ID), nil, 404, nil)
		v.c.Call("PUT", put+paid.ID, nil, 404, nil)
		v.c.Call("PUT", path(v.d, "/chats/nobody/labels/"+customer.ID), nil, 404, nil)
		v.c.Call("POST", path(v.d, "/pause"), nil, 200, nil)
		v.c.Call("PUT", put+customer.ID, nil, 409, nil)
		v.labelsAre("Customer 3")
	})
}

// labelsListed returns the labels of each listed chat.
func (v conversing) labelsListed() (list []string) {
	v.t.Helper()
	var chats struct{ Data []postern.Chat }
	v.c.Call("GET", "/v1/chats", nil, 200, &chats)
	for _, c := range chats.Data {
		list = append(list, strings.Join(labelNames(c), ", "))
	}
	return list
}

// What the phone does with labels arrives, also what it did while the gateway was down, and of chats that begin later. A
// change of the name keeps what only the phone knows of a label.
func TestLabelsOfThePhone(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		v := newConversing(t, k)
		on := k.Vendor.PhoneLabels()
		v.write(ann, 1)
		predefined := appstate.BuildLabelEdit("1", "New order", 2, false).Mutations[0]
		predefined.Value.LabelEditAction.PredefinedID = new(int32(7))
		does(t, on.Write(t.Context(), phone, predefined))
		does(t, on.Save(t.Context(), phone, "2", "-", 19))
		does(t, on.Put(t.Context(), phone, ann, "1", true))
		does(t, on.Put(t.Context(), phone, ben, "1", true))
		v.labelsAre("- 19", "New order 2")
		v.labeled(ann, "New order")
		v.write(ben, 1)
		v.labeled(ben, "New order")
		v.c.Call("PATCH", path(v.d, "/labels/1"), map[string]any{"name": "Order", "color": 4}, 200, nil)
		if l, _ := v.onPhone("1"); l.Name != "Order" || l.Color != 4 || l.Predefined != 7 {
			t.Errorf("the phone shows %+v", l)
		}
		does(t, on.Remove(t.Context(), phone, "1", ben))
		v.labeled(ben)
		does(t, on.Remove(t.Context(), phone, "2", ""))
		v.labelsAre("Order 4")

		k.Stop()
		does(t, on.Put(t.Context(), phone, ann, "1", false))
		does(t, on.Save(t.Context(), phone, "3", "Late", 1))
		does(t, on.Put(t.Context(), phone, ann, "3", true))
		k.Boot()
		v.labeled(ann, "Late")
		v.labelsAre("Late 1", "Order 4")
		does(t, on.Delete(t.Context(), phone, "3"))
		v.labelsAre("Order 4")
		v.labeled(ann)
	})
}

// The labels of an account are those of its phone: they are read anew after it was linked again.
func TestLabelsAreReadAnew(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		v := newConversing(t, k)
		on := k.Vendor.PhoneLabels()
		v.write(ann, 1)
		for i := range 25 { // so many patches that there is a snapshot
			does(t, on.Save(t.Context(), phone, "1", fmt.Sprint("Version ", i), 0))
		}
		v.newLabel("Here", 1)
		does(t, on.Put(t.Context(), phone, ann, "1", true))
		v.labeled(ann, "Version 24")
		v.c.Call("POST", path(v.d, "/unlink"), nil, 200, nil)
		awaitNotLinked(t, k, phone)
		does(t, on.Delete(t.Context(), phone, "1"))
		does(t, on.Save(t.Context(), phone, "2", "Second", 5))
		v.c.Call("POST", path(v.d, "/link"), nil, 201, nil)
		v.c.Scan(v.d.ID, map[string]string{"phoneNumber": phone})
		v.c.Await(v.d.ID, postern.Connected)
		v.labelsAre("Here 1", "Second 5")
		v.labeled(ann)
		does(t, k.Vendor.Fault(t.Context(), phone, vendorsim.FaultStateDamaged))
		does(t, on.Put(t.Context(), phone, ann, "2", true))
		v.labeled(ann, "Second")
		v.labelsAre("Here 1", "Second 5")
	})
}

// What a phone writes may be anything: it is bounded, and what is wrong changes nothing else.
func TestHostileLabels(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		v := newConversing(t, k)
		on := k.Vendor.PhoneLabels()
		v.write(ann, 1)
		edit := func(id, name string, color int32) appstate.MutationInfo {
			return appstate.BuildLabelEdit(id, name, color, false).Mutations[0]
		}
		of := func(value *waSyncAction.SyncActionValue, index ...string) appstate.MutationInfo {
			return appstate.MutationInfo{Index: index, Version: 3, Value: value}
		}
		a := edit("1", "Unread", 0)
		a.Value.LabelEditAction.Type = waSyncAction.LabelEditAction_UNREAD.Enum()
		lid, long := "123456789012345@lid", strings.Repeat("x", 100_000)
		yes := &waSyncAction.SyncActionValue{LabelAssociationAction: &waSyncAction.LabelAssociationAction{Labeled: new(true)}}
		does(t, on.Write(t.Context(), phone,
			a, of(new(waSyncAction.SyncActionValue), appstate.IndexLabelEdit), of(yes, appstate.IndexLabelAssociationChat),
			of(yes, appstate.IndexLabelAssociationChat, "1"), of(yes, appstate.IndexLabelAssociationChat, "1", "not an address"),
			of(yes, appstate.IndexLabelAssociationChat, "1", long+"@lid"), of(new(waSyncAction.SyncActionValue), appstate.IndexLabelEdit, "2"),
			of(yes, appstate.IndexLabelAssociationChat, "'; DROP TABLE label;--", lid), edit("../..", "path", 0),
			edit("", "none", 0), edit(long, "long id", 0), edit("3", "\u200b\u202e", 0),
			edit("4", "Big\u202e\x00\x07 "+long, -1), edit("5", "<b>Bold</b>", 2_000_000_000),
		))
		does(t, on.Put(t.Context(), phone, ann, "1", true)) // there is no such label here
		does(t, on.Put(t.Context(), phone, ann, "4", true))
		list := make([]appstate.MutationInfo, 500)
		for i := range list {
			list[i] = edit(fmt.Sprint(1000+i), fmt.Sprint("Flood ", i), 0)
		}
		does(t, on.Write(t.Context(), phone, list...))
		does(t, on.Put(t.Context(), phone, ann, "5", true))
		testkit.Eventually(t, "two labels on the chat", func() (bool, any) {
			got := labelNames(v.chat(ann))
			return len(got) == 2 && got[0] == "<b>Bold</b>", len(got)
		})
		all := v.labelList()
		if len(all) != postern.MaxKeptLabels {
			t.Errorf("%d labels are kept", len(all))
		}
		for _, l := range all {
			if len([]rune(l.Name)) > postern.MaxLabelName || strings.ContainsAny(l.Name, "\u202e\x00\x07") || l.Color != 0 {
				t.Errorf("a hostile label is %q, color %d", l.Name, l.Color)
			}
		}
		v.c.Call("POST", path(v.d, "/labels"), map[string]any{"name": "One more"}, 403, nil)
		for _, name := range []string{"", " ", "x ", "\u200b", long} {
			if a := v.c.Do("PATCH", path(v.d, "/labels/5"), map[string]any{"name": name}); a.Status != 422 {
				t.Errorf("the name %.10q is answered %d %s", name, a.Status, a.Body)
			}
		}
		v.c.Call("PATCH", path(v.d, "/labels/5"), map[string]any{"color": 20}, 422, nil)
		v.c.Call("PATCH", path(v.d, "/labels/5"), map[string]any{"name": "Fine"}, 200, nil)
		v.c.Call("DELETE", path(v.d, "/labels/"+url.PathEscape("../..")), nil, 404, nil)
		if a := v.c.Do("GET", "/v1/me", nil); a.Status != 200 {
			t.Errorf("the server answers %d", a.Status)
		}
		other := k.Workspace("growth")
		other.Call("GET", path(v.d, "/labels"), nil, 403, nil)
	})
}
