//===- Json.h - A kernel's record as JSON -----------------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_JSON_H
#define REPLAYJIT_TOOLS_JSON_H

#include "runtime/cache/KernelRecord.h" // toJson, which the cache writes too

#endif
