-- A note that a session has only the beginning of may be given once more, in full.

alter table injections add column whole boolean not null default true;
