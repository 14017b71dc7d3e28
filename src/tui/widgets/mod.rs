//! Widgets: functions of plain data that draw into a buffer, at any size from 0×0 up. What a widget learns while
//! drawing (what is visible, what lies where) is returned.

pub mod bars;
pub mod chart;
pub mod clock;
pub mod dialog;
pub mod heat_table;
pub mod help;
pub mod legend;
pub mod paragraph;
pub mod raster;
pub mod status;
pub mod tree;

#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod sweep;
