-- Whether there ever was a token: from the first one on, whoever comes over HTTP needs one.
select exists (select from tokens where issuer is null) as there
