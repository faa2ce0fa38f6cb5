package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Limits are the arguments that every read has.
type Limits struct {
	Limit     int    `json:"limit,omitempty" jsonschema:"the greatest number of results"`
	Cursor    string `json:"cursor,omitempty" jsonschema:"next_cursor of the answer before: goes on from there"`
	MaxTokens int    `json:"max_tokens,omitempty" jsonschema:"the greatest size of the answer, about 4 bytes a token; 4000 unless given"`
}

// Rest says what an answer does not have.
type Rest struct {
	NextCursor string `json:"next_cursor,omitempty" jsonschema:"give it as cursor to go on; absent at the end"`
	LeftOut    string `json:"left_out,omitempty" jsonschema:"what did not fit, and how to get it; absent when nothing was left out"`
}

const (
	maxTokensDefault = 4000
	bytesPerToken    = 4
)

func (l Limits) limit(unlessGiven, most int) int {
	if l.Limit <= 0 {
		return unlessGiven
	}
	return min(l.Limit, most)
}

// budget counts the tokens of an answer.
type budget struct {
	left int
	used int
	any  bool
}

func (l Limits) budget() *budget {
	if l.MaxTokens <= 0 {
		return &budget{left: maxTokensDefault}
	}
	return &budget{left: l.MaxTokens}
}

// take tells whether a result fits, and counts it.
func (b *budget) take(result any) bool {
	text, err := json.Marshal(result)
	if err != nil {
		return false
	}
	return b.takeBytes(len(text))
}

func (b *budget) takeBytes(n int) bool {
	tokens := (n + bytesPerToken - 1) / bytesPerToken
	if tokens > b.left {
		return false
	}
	b.left -= tokens
	b.used += tokens
	b.any = true
	return true
}

// cut shortens texts that are larger than the whole answer may be, so that a cursor always moves on.
func cut(text string, bytes int) string {
	if bytes < 0 {
		bytes = 0
	}
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "") + "…"
}

func parseOffset(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	var offset int
	if _, err := fmt.Sscanf(cursor, "%d", &offset); err != nil || offset < 0 || offset > 100000 {
		return 0, refuseCursor(cursor)
	}
	return offset, nil
}

// refuseCursor is the error for a cursor that no answer has given.
func refuseCursor(cursor string) error {
	return refuse("the cursor %q did not come from an answer: leave it out to start from the beginning", cut(cursor, 80))
}
