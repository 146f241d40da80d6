# Finds MLIR and makes it link statically, with exactly one copy of LLVM.
#
# The targets exported by MLIR name the shared library `LLVM` in their link
# interface. A static link would then hold two LLVMs with two registries. Here,
# and only here, that name is replaced by the static components we use.

# (LLVM's version files accept only an exact match, so the pin is checked here.)
find_package(MLIR REQUIRED CONFIG
  HINTS /usr/lib/llvm-${REPLAYJIT_LLVM_VERSION}/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL REPLAYJIT_LLVM_VERSION)
  message(FATAL_ERROR "LLVM ${LLVM_VERSION_MAJOR} found; replayjit needs "
    "${REPLAYJIT_LLVM_VERSION}: install llvm-${REPLAYJIT_LLVM_VERSION}-dev and "
    "libmlir-${REPLAYJIT_LLVM_VERSION}-dev")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

llvm_map_components_to_libnames(replayjit_llvm_parts
  core support passes nvptxcodegen nvptxdesc nvptxinfo x86codegen x86desc x86info
  orcjit irreader linker bitreader bitwriter frontendopenmp targetparser
  transformutils)
# What these archives take of glibc 2.36, so that 2.35 is enough.
add_library(replayjit_arc4random STATIC
  ${PROJECT_SOURCE_DIR}/compiler/Support/Arc4Random.cpp)
add_library(LlvmStatic INTERFACE)
target_link_libraries(LlvmStatic INTERFACE ${replayjit_llvm_parts}
  replayjit_arc4random)

get_property(mlir_libs GLOBAL PROPERTY MLIR_ALL_LIBS)
foreach(lib ${mlir_libs})
  get_target_property(deps ${lib} INTERFACE_LINK_LIBRARIES)
  if(deps)
    list(TRANSFORM deps REPLACE "^LLVM$" "LlvmStatic")
    list(TRANSFORM deps REPLACE "^\\$<LINK_ONLY:LLVM>$" "LlvmStatic")
    set_target_properties(${lib} PROPERTIES INTERFACE_LINK_LIBRARIES "${deps}")
  endif()
endforeach()

# Compression libraries: their archives, so that a tool runs on a bare machine.
foreach(pair "zstd::libzstd_shared|libzstd.a" "ZLIB::ZLIB|libz.a")
  string(REPLACE "|" ";" pair ${pair})
  list(GET pair 0 target)
  list(GET pair 1 archive)
  if(TARGET ${target})
    find_library(archive_${archive} ${archive} REQUIRED)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION ${archive_${archive}}
      IMPORTED_LOCATION_RELEASE ${archive_${archive}}
      IMPORTED_LOCATION_NONE ${archive_${archive}})
  endif()
endforeach()
