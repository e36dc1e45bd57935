-- An input that a person wrote for a call which two people have to agree on: it waits for another person. The last one counts.
alter table approvals
    add column edited_input jsonb,
    add column edited_by    text,   -- the API key
    add column edited_name  text;   -- the key's name: keys of one name are one person
