"""Configuration: settings, their translation for librdkafka, TLS, SASL."""
