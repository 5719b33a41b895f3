package contactid

import (
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// AddForm lets a contact be found by another form of its number. A contact that has the form as its number is that
// contact from then on: it gets the number, or becomes a part of the contact that has it, and so does its chat. A form
// that belongs to somebody else, by the LID, stays with that person.
//
// Single writer: change.
func AddForm(t *db.Tx, s Sighting, form string) ([]Identified, error) {
	was, err := find(t, s.WorkspaceID, form)
	if err != nil || was.lid != "" && was.lid != s.Who.LID || was.number == s.Who.Number && was.number != "" {
		return nil, err
	}
	if err := moveNumber(t, s, was); err != nil {
		return nil, err
	}
	_, news, err := Resolve(t, []Sighting{s})
	if err != nil {
		return nil, err
	}
	c, err := find(t, s.WorkspaceID, s.Who.Number)
	if err != nil {
		return nil, err
	}
	var merged postern.ContactID
	if was.id != "" && was.id != c.id {
		merged, err = was.id, absorb(t, was, &c)
	}
	if err = errors.Join(err, key(t, s.WorkspaceID, form, c.id)); err != nil || was.id == "" {
		return news, err
	}
	s.Who.LID = form // by which its devices know the chat
	told, err := joined(t, s, c, merged, true)
	return append(news, told...), err
}

// moveNumber gives a contact that has another form of a number the number, unless a contact has it.
func moveNumber(t *db.Tx, s Sighting, c row) error {
	other, err := find(t, s.WorkspaceID, s.Who.Number)
	if err != nil || c.id == "" || other.id != "" {
		return err
	}
	return learnNumber(t, s, &c)
}
