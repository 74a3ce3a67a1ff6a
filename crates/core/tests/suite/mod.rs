mod permit;
mod risk;
