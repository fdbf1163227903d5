//! The run directory: manifest, events, Parquet tables; versioned format
