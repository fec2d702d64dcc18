delete from console_sessions where digest = :digest::bytea
