package postern

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// Poll is a question with options to choose from.
type Poll struct {
	Question      string   `json:"question" doc:"The question, at most 255 characters." example:"Where shall we meet?"`
	Options       []string `json:"options" nullable:"false" doc:"The options: 2 to 12 in a poll that is sent, each different from the others, at most 100 characters. A received poll may have up to 1,000." example:"[\"At the office\",\"Online\"]"`
	MaxSelections int      `json:"maxSelections,omitzero" minimum:"0" doc:"How many options one person may choose; any number if it is 0 or absent." example:"1"`
}

// Limits of a poll that is sent; those of the vendor's apps.
const (
	MinPollOptions = 2
	MaxPollOptions = 12
	MaxPollOption  = 100 // characters
	MaxQuestion    = 255 // characters
	// MaxOptionsShown is how many options of a received poll are kept.
	MaxOptionsShown = 1000
)

// check returns nil if p can be sent; p may be nil.
func (p *Poll) check() error {
	switch {
	case p == nil:
		return Invalid("/poll", "a poll needs a question and options")
	case p.Question == "":
		return Invalid("/poll/question", "a poll needs a question")
	case utf8.RuneCountInString(p.Question) > MaxQuestion:
		return Errorf(PayloadTooLarge, "the question of a poll has at most %d characters", MaxQuestion)
	case len(p.Options) < MinPollOptions || len(p.Options) > MaxPollOptions:
		return Invalid("/poll/options", "a poll has %d to %d options", MinPollOptions, MaxPollOptions)
	case p.MaxSelections < 0 || p.MaxSelections > len(p.Options):
		return Invalid("/poll/maxSelections", "it is from 0 (any number) to the number of options")
	}
	for i, option := range p.Options {
		if err := p.checkOption(i, option); err != nil {
			return err
		}
	}
	return nil
}

// CheckVote returns nil if options can be chosen; p may be nil.
func (p *Poll) CheckVote(options []string) error {
	if p == nil {
		return Errorf(ActionNotPossible, "the message is not a poll")
	}
	if p.MaxSelections > 0 && len(options) > p.MaxSelections {
		return Invalid("/options", "too many options; in this poll, one person may choose %d", p.MaxSelections)
	}
	for i, option := range options {
		pointer := "/options/" + strconv.Itoa(i)
		switch {
		case !slices.Contains(p.Options, option):
			return Invalid(pointer, "the poll has no such option; use the text of one of its options")
		case slices.Index(options, option) < i:
			return Invalid(pointer, "each option can be chosen once")
		}
	}
	return nil
}

func (p *Poll) checkOption(i int, option string) error {
	pointer := "/poll/options/" + strconv.Itoa(i)
	switch {
	case option == "":
		return Invalid(pointer, "an option needs a text")
	case utf8.RuneCountInString(option) > MaxPollOption:
		return Errorf(PayloadTooLarge, "an option of a poll has at most %d characters", MaxPollOption)
	case slices.Index(p.Options, option) < i:
		return Invalid(pointer, "each option is different from the others; a vote names its text")
	}
	return nil
}
