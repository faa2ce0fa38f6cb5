package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

type importCounts struct{ entities, relations int }

const importBatch = 200

// importMemory reads the file of the reference memory server: a JSON object a line, an entity or a relation. Lines that
// are neither are reported and left out. What is there already stays.
func importMemory(ctx context.Context, file io.Reader, space string, backend caller) (importCounts, error) {
	var counts importCounts
	var entities []Entity
	var relations []Relation
	send := func(least int) error {
		if len(entities) > least {
			var created entitiesArguments
			if err := callTool(ctx, backend, space, "create_entities", entitiesArguments{entities}, &created); err != nil {
				return err
			}
			counts.entities += len(created.Entities)
			entities = nil
		}
		if len(relations) > least {
			var created relationsArguments
			if err := callTool(ctx, backend, space, "create_relations", relationsArguments{relations}, &created); err != nil {
				return err
			}
			counts.relations += len(created.Relations)
			relations = nil
		}
		return nil
	}
	reader := bufio.NewReaderSize(file, 1<<20)
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return counts, err
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			var record struct {
				Type string `json:"type"`
				Entity
				Relation
			}
			switch problem := json.Unmarshal(text, &record); {
			case problem == nil && record.Type == "entity":
				entities = append(entities, record.Entity)
			case problem == nil && record.Type == "relation":
				relations = append(relations, record.Relation)
			default:
				logf("line %d is neither an entity nor a relation, and is left out: %s", number, cut(string(text), 80))
			}
		}
		if err == io.EOF {
			return counts, send(0)
		}
		if err := send(importBatch - 1); err != nil {
			return counts, fmt.Errorf("up to line %d: %w", number, err)
		}
	}
}

func callTool(ctx context.Context, backend caller, space, tool string, arguments, result any) error {
	text, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	reply, err := backend.Call(ctx, Request{ID: newRequestID(), Tool: tool, Space: space, Arguments: text})
	if err != nil {
		return err
	}
	if reply.Failure != "" {
		return refusal(reply.Failure)
	}
	return json.Unmarshal(reply.Result, result)
}
