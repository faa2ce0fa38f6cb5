module basalt

go 1.23
