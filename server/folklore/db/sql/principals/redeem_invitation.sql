update invitations set redeemed_at = :now::timestamptz where token_id = :token::uuid
