"""Read models: tables that answer queries; each is made from the log and can be rebuilt from it."""
