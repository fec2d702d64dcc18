-- True if a token of this server exists: from then on HTTP requests need one.
select exists (select from tokens where issuer is null) as there
