pub mod facts;
