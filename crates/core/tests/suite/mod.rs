mod permit;
