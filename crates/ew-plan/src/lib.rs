//! Inventory sources, scenarios, patterns, schedules and the max-min fair expectation: pure
