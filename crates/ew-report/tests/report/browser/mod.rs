//! The report in a real browser: what is seen, by keyboard and pointer, wide and narrow, light and
//! dark, on paper. `cargo xtask tidy` wants a file here for every file of the page's script.

mod base;
mod chromium;
mod fabric;
mod live;
mod look;
mod map;
pub(crate) mod pages;
mod pair;
mod panel;
