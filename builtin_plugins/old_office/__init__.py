"""Word, Excel and PowerPoint files in the binary formats from before 2007, and binary workbooks."""
