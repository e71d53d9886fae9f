# find_package(vpps) gives the targets
#   vpps::vpps   the shared library and its C header
#   vpps::dynet  the DyNet-compatible C++ front-end on top of it
get_filename_component(_vpps_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
# The library folder is one or two levels below the prefix (lib, lib/x86_64-linux-gnu).
foreach(_vpps_up ".." "../..")
  if(NOT _vpps_include AND EXISTS "${_vpps_libdir}/${_vpps_up}/include/vpps.h")
    get_filename_component(_vpps_include "${_vpps_libdir}/${_vpps_up}/include" ABSOLUTE)
  endif()
endforeach()
if(NOT _vpps_include)
  set(vpps_FOUND FALSE)
  set(vpps_NOT_FOUND_MESSAGE "vpps.h is not beside ${_vpps_libdir}: install libvpps again")
  return()
endif()

if(NOT TARGET vpps::vpps)
  add_library(vpps::vpps SHARED IMPORTED)
  set_target_properties(vpps::vpps PROPERTIES
    IMPORTED_LOCATION "${_vpps_libdir}/libvpps.so"
    IMPORTED_SONAME "libvpps.so.0.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_vpps_include}")
  add_library(vpps::dynet STATIC IMPORTED)
  set_target_properties(vpps::dynet PROPERTIES
    IMPORTED_LOCATION "${_vpps_libdir}/libvpps_dynet.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_vpps_include}/vpps-dynet"
    INTERFACE_LINK_LIBRARIES vpps::vpps)
endif()
unset(_vpps_include)
unset(_vpps_libdir)
