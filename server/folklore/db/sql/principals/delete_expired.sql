-- Forget the tokens of issuers that have expired before :before; our own stay to be told about.
delete from tokens where issuer is not null and expires_at < :before::timestamptz returning id
