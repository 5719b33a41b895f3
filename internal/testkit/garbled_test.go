package testkit_test

import (
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// An action that could not be decrypted at first has its effect when it can, and no message
// stands for it meanwhile.
func TestGarbledActionsHaveTheirEffectLater(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		m := send(a.c, a.d, reader, "hello")
		m = a.c.AwaitMessage(m.ID, postern.Read)
		if err := k.Vendor.Fault(t.Context(), phone, vendorsim.FaultGarble); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Vendor.React(t.Context(), phone, reader, m.NetworkID, "👍"); err != nil {
			t.Fatal(err)
		}
		if e := a.event(postern.MessageReaction, 1); e["id"] != string(m.ID) || from(e["reaction"], "emoji") != "👍" {
			t.Errorf("message.reaction = %v", e)
		}
		var list struct{ Data []postern.Message }
		a.c.Call("GET", "/v1/messages", nil, 200, &list)
		if len(list.Data) != 1 || len(list.Data[0].State.Reactions) != 1 {
			t.Errorf("the messages are %+v", list.Data)
		}
		for _, d := range a.hooks.All() {
			if d.Type() == postern.MessageUndecryptable || d.Type() == postern.MessageReceived {
				t.Errorf("there is an event about a message: %s", d.Body)
			}
		}
	})
}
