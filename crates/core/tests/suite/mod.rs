mod golden;
mod permit;
mod risk;
