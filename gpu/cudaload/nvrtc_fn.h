/* The functions of the run-time compiler NVRTC that are used, one per line:
 * NVRTC_FN(symbol, (parameters)). */
/* clang-format off: tables read better in lines */
NVRTC_FN(nvrtcVersion, (int *a, int *b))
NVRTC_FN(nvrtcGetNumSupportedArchs, (int *a))
NVRTC_FN(nvrtcGetSupportedArchs, (int *a))
NVRTC_FN(nvrtcCreateProgram, (nvrtcProgram *a, const char *b, const char *c, int d, const char *const *e, const char *const *f))
NVRTC_FN(nvrtcDestroyProgram, (nvrtcProgram *a))
NVRTC_FN(nvrtcCompileProgram, (nvrtcProgram a, int b, const char *const *c))
NVRTC_FN(nvrtcGetCUBINSize, (nvrtcProgram a, size_t *b))
NVRTC_FN(nvrtcGetCUBIN, (nvrtcProgram a, char *b))
NVRTC_FN(nvrtcGetProgramLogSize, (nvrtcProgram a, size_t *b))
NVRTC_FN(nvrtcGetProgramLog, (nvrtcProgram a, char *b))
