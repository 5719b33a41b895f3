package live

import (
	"context"
	"net/http"
	"time"

	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

// inviteTime is for how long invitations are sent: a caller waits for the outcome of the whole request.
const inviteTime = 12 * time.Second

// isInvitable reports whether a participant could not be added because of its own settings, and can be invited.
func isInvitable(p types.GroupParticipant) bool {
	return p.Error == http.StatusForbidden && p.AddRequest != nil
}

// inviteEach sends those who do not let others add them a message with which they can join, and notes it in their
// outcomes. After a while, it leaves the others out.
func inviteEach(
	ctx context.Context, cli *whatsmeow.Client, group *types.GroupInfo, list []types.GroupParticipant,
	outcomes []postern.ParticipantOutcome,
) {
	end := time.Now().Add(inviteTime)
	for i := range outcomes {
		left := time.Until(end)
		if left < time.Second {
			return
		}
		if isInvitable(list[i]) {
			_, err := cli.SendMessage(ctx, list[i].JID.ToNonAD(), invitation(group, *list[i].AddRequest),
				whatsmeow.SendRequestExtra{Timeout: left})
			outcomes[i].Invited = err == nil
		}
	}
}

func invitation(group *types.GroupInfo, add types.GroupParticipantAddRequest) *waE2E.Message {
	name := clip(group.Name, postern.MaxGroupSubject)
	return &waE2E.Message{GroupInviteMessage: &waE2E.GroupInviteMessage{
		GroupJID: new(group.JID.String()), GroupName: &name, InviteCode: &add.Code, InviteExpiration: new(add.Expiration.Unix()),
	}}
}
