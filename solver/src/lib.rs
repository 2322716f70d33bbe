//! Exact sparse assignment for dispatch windows.
