# How our own libraries and tools are declared.

add_library(replayjit_options INTERFACE)
target_include_directories(replayjit_options INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_include_directories(replayjit_options SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(replayjit_options INTERFACE ${LLVM_DEFINITIONS})
target_compile_options(replayjit_options INTERFACE
  -Wall -Wextra -Wno-unused-parameter -fvisibility=hidden
  -fvisibility-inlines-hidden -ffunction-sections -fdata-sections)
target_link_options(replayjit_options INTERFACE
  -Wl,--gc-sections -static-libstdc++ -static-libgcc)
if(REPLAYJIT_COMPILER) # GNU ld takes minutes and gigabytes for LLVM.
  target_link_options(replayjit_options INTERFACE -fuse-ld=lld -B${LLVM_TOOLS_BINARY_DIR})
endif()

# replayjit_library(NAME SOURCES... LINK libs... [OVER_LLVM]): one folder, one static
# library. Libraries neither throw nor catch, but for what base/Exceptions.h says:
# std::bad_alloc passes through them to the C interface. Through LLVM it cannot pass,
# nor through those over it.
function(replayjit_library name)
  cmake_parse_arguments(ARG "OVER_LLVM" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC replayjit_options ${ARG_LINK})
  if(ARG_OVER_LLVM)
    target_compile_options(${name} PRIVATE -fno-exceptions)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# Where the package nvidia-nvjitlink of pip lies beside ours: for dlopen, from the
# shared library and from the tools.
function(replayjit_finds_nvjitlink target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "$ORIGIN/../nvidia/cu13/lib;$ORIGIN/../nvidia/nvjitlink/lib")
endfunction()
