module libvpps

go 1.26
