//! Interfaces: addresses, MTU, link speed, driver (ioctl and ethtool).
