package live

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/keys"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// address returns the network's address of a group.
func address(chat string) types.JID {
	return types.NewJID(strings.TrimPrefix(chat, "group:"), types.GroupServer)
}

func chatOf(jid types.JID) string {
	if jid.IsEmpty() {
		return ""
	}
	return "group:" + jid.User
}

// Own returns the account of a client.
func Own(cli *whatsmeow.Client) postern.Participant {
	return person(cli.Store.GetJID(), cli.Store.GetLID())
}

// person returns the names that some addresses give to somebody.
func person(jids ...types.JID) (p postern.Participant) {
	for _, jid := range jids {
		switch jid.Server {
		case types.DefaultUserServer, types.HostedServer:
			p.PhoneNumber = postern.Maybe("+" + jid.User)
		case types.HiddenUserServer, types.HostedLIDServer:
			p.LID = postern.Maybe(postern.ChatOfLID(jid.User))
		}
	}
	return p
}

// known returns somebody with the other name, if the key store has it.
func known(ctx context.Context, cli *whatsmeow.Client, jids ...types.JID) (postern.Participant, error) {
	p, lids := person(jids...), cli.Store.LIDs
	for _, jid := range jids {
		var other types.JID
		var err error
		switch {
		case jid.Server == types.HiddenUserServer && p.PhoneNumber == "":
			other, err = lids.GetPNForLID(ctx, jid.ToNonAD())
		case jid.Server == types.DefaultUserServer && p.LID == "":
			other, err = lids.GetLIDForPN(ctx, jid.ToNonAD())
		}
		if err != nil {
			return p, err
		}
		if !other.IsEmpty() {
			return person(append(jids, other)...), nil
		}
	}
	return p, nil
}

// addresses returns the addresses of people that are known; unknown are the numbers that have to be looked up.
func addresses(
	ctx context.Context, cli *whatsmeow.Client, who []string,
) (lids map[string]types.JID, unknown []types.JID, err error) {
	lids = map[string]types.JID{}
	var numbers []types.JID
	for _, text := range who {
		if digits, ok := strings.CutPrefix(text, "lid:"); ok {
			lids[text] = types.NewJID(digits, types.HiddenUserServer)
		} else {
			numbers = append(numbers, numberAddress(text))
		}
	}
	known, err := cli.Store.LIDs.GetManyLIDsForPNs(ctx, numbers)
	for _, pn := range numbers {
		if lid, ok := known[pn]; ok {
			lids["+"+pn.User] = lid
		} else {
			unknown = append(unknown, pn)
		}
	}
	return lids, unknown, err
}

// find returns the addresses of people, in their order; missing are those who are not on the network. Unless lookUp is
// true, those whose addresses are not known are missing, too.
func find(
	ctx context.Context, cli *whatsmeow.Client, who []string, lookUp bool,
) (people []types.JID, missing []string, err error) {
	lids, unknown, err := addresses(ctx, cli, who)
	if err != nil {
		return nil, nil, err
	}
	if lookUp {
		if err := look(ctx, cli, unknown, lids); err != nil {
			return nil, nil, err
		}
	}
	for _, text := range who {
		if lid := lids[text]; lid.IsEmpty() {
			missing = append(missing, text)
		} else {
			people = append(people, lid.ToNonAD())
		}
	}
	return people, missing, nil
}

// look adds the LIDs of numbers that the network knows, also by another form.
func look(ctx context.Context, cli *whatsmeow.Client, numbers []types.JID, lids map[string]types.JID) error {
	if len(numbers) == 0 {
		return nil
	}
	ctx, done, err := readAhead(ctx, cli, numbers)
	defer done()
	if err != nil {
		return err
	}
	found, err := cli.GetUserInfo(ctx, numbers)
	if err != nil {
		return err
	}
	var others []string
	for _, pn := range numbers {
		text := "+" + pn.User
		if lids[text] = found[pn].LID; lids[text].IsEmpty() {
			others = append(others, text)
		}
	}
	return lookFurther(ctx, cli, others, lids)
}

// lookFurther adds the LIDs of numbers that the network knows by another form: the search of the apps finds them, while
// an address must have the form of the network.
func lookFurther(ctx context.Context, cli *whatsmeow.Client, numbers []string, lids map[string]types.JID) error {
	if len(numbers) == 0 {
		return nil
	}
	found, err := cli.IsOnWhatsApp(ctx, numbers)
	for _, f := range found {
		if p := person(f.JID, f.PhoneNumber); f.IsIn && p.LID != "" {
			digits := strings.TrimPrefix(string(p.LID), "lid:")
			lids["+"+strings.TrimPrefix(f.Query, "+")] = types.NewJID(digits, types.HiddenUserServer)
		}
	}
	return err
}

// readAhead returns a context for calls that read something about each of some people, and a function to call after
// them.
func readAhead(
	ctx context.Context, cli *whatsmeow.Client, people []types.JID,
) (_ context.Context, done func(), err error) {
	ring, ok := keys.RingOf(cli.Store)
	if !ok {
		return ctx, func() {}, nil
	}
	return ring.ReadAhead(ctx, people)
}

func numberAddress(number string) types.JID {
	return types.NewJID(strings.TrimPrefix(number, "+"), types.DefaultUserServer)
}

func notFound(missing []string, action postern.ParticipantAction) []postern.ParticipantOutcome {
	list := []postern.ParticipantOutcome{}
	for _, number := range missing {
		list = append(list, postern.ParticipantOutcome{
			PhoneNumber: postern.Maybe(number), Action: action, Status: postern.ParticipantNotFound,
		})
	}
	return list
}

// outcomes converts what the network says of each participant.
func outcomes(
	ctx context.Context, cli *whatsmeow.Client, list []types.GroupParticipant, action postern.ParticipantAction,
) []postern.ParticipantOutcome {
	list = list[:min(len(list), maxMembers)]
	out := make([]postern.ParticipantOutcome, len(list))
	for i, p := range list {
		who, err := known(ctx, cli, p.JID, p.PhoneNumber, p.LID)
		if err != nil {
			who = person(p.JID, p.PhoneNumber, p.LID)
		}
		out[i] = postern.ParticipantOutcome{
			PhoneNumber: who.PhoneNumber, LID: who.LID, Action: action, Status: status(p.Error),
		}
	}
	return out
}

func status(code int) string {
	switch code {
	case 0, http.StatusOK:
		return postern.ParticipantDone
	case http.StatusForbidden, http.StatusUnauthorized:
		return postern.ParticipantNotAllowed
	case http.StatusNotFound:
		return postern.ParticipantNotFound
	case http.StatusConflict, http.StatusRequestTimeout: // is in the group already; has left it lately
		return postern.ParticipantUnchanged
	}
	return postern.ParticipantFailed
}

// Info converts a group. own is the account.
func Info(info *types.GroupInfo, own postern.Participant) postern.Group {
	g := postern.Group{GroupSummary: postern.GroupSummary{
		ChatID: chatOf(info.JID), Subject: clip(info.Name, postern.MaxGroupSubject),
		Description:  clip(info.Topic, postern.MaxGroupDescription),
		AnnounceOnly: info.IsAnnounce, AdminsEdit: info.IsLocked, JoinApproval: info.IsJoinApprovalRequired,
		Disappearing: int(info.DisappearingTimer), Role: postern.GroupMember, CreatedAt: timeOf(info.GroupCreated),
		Kind: kindOf(info), CommunityID: postern.Maybe(chatOf(info.LinkedParentJID)),
	}}
	for i, p := range info.Participants {
		if i == maxMembers {
			break
		}
		member := person(p.JID, p.PhoneNumber, p.LID)
		if member == (postern.Participant{}) { // a bot
			continue
		}
		member.Role = roleOf(p)
		if member.Is(own) {
			g.Role = member.Role
		}
		g.Participants = append(g.Participants, member)
	}
	g.Size = max(len(g.Participants), min(info.ParticipantCount, maxMembers))
	return g
}

func kindOf(info *types.GroupInfo) string {
	switch {
	case info.IsParent:
		return postern.CommunityGroup
	case info.IsDefaultSubGroup:
		return postern.AnnouncementsGroup
	}
	return postern.PlainGroup
}

// maxMembers is how many members of a group are kept: no group of the network has more.
const maxMembers = 5000

func roleOf(p types.GroupParticipant) string {
	switch {
	case p.IsSuperAdmin:
		return postern.GroupOwner
	case p.IsAdmin:
		return postern.GroupAdmin
	}
	return postern.GroupMember
}

// clip cuts a text of the network to a number of characters.
func clip(text string, most int) string {
	if runes := []rune(text[:min(len(text), 4*most)]); len(runes) > most {
		return string(runes[:most])
	}
	return strings.ToValidUTF8(text[:min(len(text), 4*most)], "")
}

func timeOf(t time.Time) postern.Time {
	if t.IsZero() {
		return 0
	}
	return postern.TimeOf(t.UTC())
}

func setTimer(ctx context.Context, cli *whatsmeow.Client, jid types.JID, seconds int) error {
	return cli.SetDisappearingTimer(ctx, jid, time.Duration(seconds)*time.Second, time.Now())
}

// refusal returns the error of a request about a group.
func refusal(err error) error {
	var iq *whatsmeow.IQError
	var refused *network.GroupRefused
	var inJSON types.GraphQLError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, whatsmeow.ErrInviteLinkRevoked), errors.Is(err, whatsmeow.ErrInviteLinkInvalid):
		return &network.GroupRefused{Why: network.ErrInviteUseless}
	case errors.Is(err, whatsmeow.ErrNotConnected):
		return network.ErrNotConnected
	case errors.Is(err, network.ErrBehind):
		return network.ErrBehind
	case errors.As(err, &iq) && iq.Code/100 == 4:
		return &network.GroupRefused{Why: refusals(iq.Code)}
	case errors.As(err, &inJSON) && inJSON.Extensions.ErrorCode/100 == 4:
		return &network.GroupRefused{Why: refusals(inJSON.Extensions.ErrorCode)}
	}
	return errNoAnswer
}

// errNoAnswer stands for errors that may contain numbers.
var errNoAnswer = errors.New("the network did not answer the request")

func refusals(code int) error {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return network.ErrGroupForbids
	case http.StatusNotFound:
		return network.ErrNoSuchGroup
	case http.StatusTooManyRequests:
		return network.ErrTooManyAsks
	}
	return network.ErrGroupRefused
}

// Updates converts a notice of the network.
func Updates(ctx context.Context, cli *whatsmeow.Client, evt *events.GroupInfo) ([]network.GroupUpdate, error) {
	by, err := writer(ctx, cli, evt.Sender, evt.SenderPN)
	if err != nil {
		return nil, err
	}
	base := network.GroupUpdate{GroupNotice: postern.GroupNotice{ChatID: chatOf(evt.JID), By: by, At: timeOf(evt.Timestamp)}}
	var list []network.GroupUpdate
	unclear := evt.MembershipApprovalMode != nil || evt.Link != nil || evt.Unlink != nil
	if c := changes(evt); c != (postern.GroupChange{}) || unclear {
		u := base
		u.Change, u.Unclear = c, unclear
		list = append(list, u)
	}
	for _, p := range []struct {
		action postern.ParticipantAction
		who    []types.JID
	}{
		{postern.AddParticipants, evt.Join}, {postern.RemoveParticipants, evt.Leave},
		{postern.PromoteParticipants, evt.Promote}, {postern.DemoteParticipants, evt.Demote},
	} {
		if len(p.who) == 0 {
			continue
		}
		u := base
		u.Action = p.action
		if u.Participants, err = people(ctx, cli, p.who); err != nil {
			return nil, err
		}
		own := isAmong(Own(cli), u.Participants)
		u.Left, u.Entered = own && p.action == postern.RemoveParticipants, own && p.action == postern.AddParticipants
		list = append(list, u)
	}
	if evt.Delete != nil {
		u := base
		u.Left = true
		list = append(list, u)
	}
	return list, nil
}

func writer(ctx context.Context, cli *whatsmeow.Client, sender, pn *types.JID) (postern.Participant, error) {
	var jids []types.JID
	for _, jid := range []*types.JID{sender, pn} {
		if jid != nil && !jid.IsEmpty() {
			jids = append(jids, *jid)
		}
	}
	return known(ctx, cli, jids...)
}

func people(ctx context.Context, cli *whatsmeow.Client, who []types.JID) ([]postern.Participant, error) {
	list := make([]postern.Participant, 0, len(who))
	for _, jid := range who[:min(len(who), maxMembers)] {
		p, err := known(ctx, cli, jid)
		if err != nil {
			return nil, err
		}
		if p == (postern.Participant{}) {
			continue
		}
		p.Role = postern.GroupMember
		list = append(list, p)
	}
	return list, nil
}

func isAmong(one postern.Participant, list []postern.Participant) bool {
	for _, p := range list {
		if p.Is(one) {
			return true
		}
	}
	return false
}

// changes returns what a notice changes in a group itself. It leaves out whether administrators approve new members:
// whatsmeow reads that a notice is about that, and not which way, so the group is read again.
func changes(evt *events.GroupInfo) (c postern.GroupChange) {
	if evt.Name != nil {
		c.Subject = new(clip(evt.Name.Name, postern.MaxGroupSubject))
	}
	if evt.Topic != nil {
		c.Description = new(clip(evt.Topic.Topic, postern.MaxGroupDescription))
	}
	if evt.Announce != nil {
		c.AnnounceOnly = new(evt.Announce.IsAnnounce)
	}
	if evt.Locked != nil {
		c.AdminsEdit = new(evt.Locked.IsLocked)
	}
	if evt.Ephemeral != nil {
		c.Disappearing = new(int(evt.Ephemeral.DisappearingTimer))
	}
	return c
}

// Joined converts the notice that the account is in a new group.
func Joined(ctx context.Context, cli *whatsmeow.Client, evt *events.JoinedGroup) (network.GroupUpdate, error) {
	by, err := writer(ctx, cli, evt.Sender, evt.SenderPN)
	info := Info(&evt.GroupInfo, Own(cli))
	return network.GroupUpdate{GroupNotice: postern.GroupNotice{
		ChatID: info.ChatID, By: by, At: postern.TimeOf(time.Now()), Seen: &info, Joins: true,
	}}, err
}
