"""Wire format: ConsumerProtocol and the sticky assignors' user data, in bytes."""
