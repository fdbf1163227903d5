//! Derived numbers, statistics, expectation against measurement, one rule per cause: pure
