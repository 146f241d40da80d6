/* two_llvms.c - libreplayjit and another LLVM in one process, both at work.
 *
 * Usage: two_llvms LIBLLVM LIBSTEPS llvm-first|replayjit-first. LIBSTEPS is
 * decode_steps.c, linked with libreplayjit. Whichever comes first offers all
 * its symbols to the other. */
#include <dlfcn.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static void *llvm, *steps;

static void *open_global(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    fprintf(stderr, "%s\n", dlerror());
  CHECK(library);
  return library;
}

/* A function of the other LLVM, and of no one else. */
#define LLVM(name) ((__typeof__(&name))find(#name))
static void *find(const char *name) {
  void *function = dlsym(llvm, name);
  CHECK(function);
  Dl_info info;
  CHECK(dladdr(function, &info) && strstr(info.dli_fname, "libLLVM"));
  return function;
}

/* Builds a function, verifies it and emits assembly for this CPU. */
static void use_llvm(void) {
  LLVM(LLVMInitializeX86TargetInfo)();
  LLVM(LLVMInitializeX86Target)();
  LLVM(LLVMInitializeX86TargetMC)();
  LLVM(LLVMInitializeX86AsmPrinter)();
  LLVMContextRef context = LLVM(LLVMContextCreate)();
  LLVMModuleRef module =
      LLVM(LLVMModuleCreateWithNameInContext)("other", context);
  LLVMTypeRef i32 = LLVM(LLVMInt32TypeInContext)(context);
  LLVMTypeRef type = LLVM(LLVMFunctionType)(i32, &i32, 1, 0);
  LLVMValueRef function = LLVM(LLVMAddFunction)(module, "twice", type);
  LLVMBuilderRef builder = LLVM(LLVMCreateBuilderInContext)(context);
  LLVM(LLVMPositionBuilderAtEnd)
  (builder, LLVM(LLVMAppendBasicBlockInContext)(context, function, ""));
  LLVMValueRef argument = LLVM(LLVMGetParam)(function, 0);
  LLVM(LLVMBuildRet)
  (builder, LLVM(LLVMBuildAdd)(builder, argument, argument, ""));
  char *text = NULL;
  CHECK(!LLVM(LLVMVerifyModule)(module, LLVMReturnStatusAction, &text));
  LLVM(LLVMDisposeMessage)(text);

  char *triple = LLVM(LLVMGetDefaultTargetTriple)();
  LLVMTargetRef target = NULL;
  CHECK(!LLVM(LLVMGetTargetFromTriple)(triple, &target, &text));
  LLVMTargetMachineRef machine = LLVM(LLVMCreateTargetMachine)(
      target, triple, "", "", LLVMCodeGenLevelDefault, LLVMRelocPIC,
      LLVMCodeModelDefault);
  LLVMMemoryBufferRef assembly = NULL;
  CHECK(!LLVM(LLVMTargetMachineEmitToMemoryBuffer)(
      machine, module, LLVMAssemblyFile, &text, &assembly));
  CHECK(strstr(LLVM(LLVMGetBufferStart)(assembly), "twice:"));
  LLVM(LLVMDisposeMemoryBuffer)(assembly);
  LLVM(LLVMDisposeTargetMachine)(machine);
  LLVM(LLVMDisposeMessage)(triple);
  LLVM(LLVMDisposeBuilder)(builder);
  LLVM(LLVMContextDispose)(context);
}

static void use_replayjit(void) {
  int (*run)(void) = (int (*)(void))dlsym(steps, "decode_steps_run");
  CHECK(run && run() == 0);
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  if (strcmp(argv[3], "llvm-first") == 0) {
    llvm = open_global(argv[1]);
    use_llvm();
    steps = open_global(argv[2]);
    use_replayjit();
  } else {
    steps = open_global(argv[2]);
    use_replayjit();
    llvm = open_global(argv[1]);
  }
  for (int i = 0; i < 2; ++i) {
    use_llvm();
    use_replayjit();
  }
  return 0;
}
