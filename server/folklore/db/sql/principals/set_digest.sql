-- Give a token its secret. A digest in use violates tokens_digest_key.
update tokens set digest = :digest::bytea where id = :token::uuid
