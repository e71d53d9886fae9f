package main

/*
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"unsafe"

	"libvpps/log"
	"libvpps/persist"
)

//export goSetLog
func goSetLog(level C.int, function C.vpps_log_function, data unsafe.Pointer) (status C.int) {
	defer guard(&status)
	var to func(log.Level, string)
	if function != nil {
		to = func(l log.Level, line string) {
			text := append([]byte(line), 0)
			C.vpps_log_line(function, data, C.int(l), (*C.vpps_cchar)(unsafe.Pointer(&text[0])))
		}
	}
	log.Set(log.Level(level), to)
	return C.VPPS_OK
}

//export goSystemReport
func goSystemReport(to *C.char, size C.size_t, needed *C.size_t) (status C.int) {
	defer guard(&status)
	text(persist.SystemReport(version()), to, size, needed)
	return C.VPPS_OK
}

//export goMemoryReport
func goMemoryReport(h C.uintptr_t, to *C.char, size C.size_t, needed *C.size_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		text(e.MemoryReport(), to, size, needed)
		return nil
	})
}
