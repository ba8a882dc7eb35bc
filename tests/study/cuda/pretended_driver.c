// A driver of CUDA without a GPU: memory is that of the processor, and a kernel writes what it was told instead of learning.
//
// With it, tests run the file that talks to the driver. Every pointer that a launch gets is used, so that a pointer in a wrong place is
// seen in the errors.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;
static int64_t taken = 0;

static int none(void) { return 0; }
static int64_t whole(void) { return getenv("PRETENDED_MEMORY") ? atoll(getenv("PRETENDED_MEMORY")) : 1LL << 30; }
static int count_devices(int *count) { *count = 1; return 0; }
static int get_device(int *device, int number) { *device = number; return 0; }
static int get_attribute(int *value, int attribute, int device) {
    // Compute capability 9.0, 227 KB of shared memory in a block, 4 multiprocessors, double precision at half the speed.
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 232448 : attribute == 16 ? 4 : attribute == 87 ? 2 : 0;
    return 0;
}
static int get_name(char *name, int length, int device) { strncpy(name, "a GPU that does not exist", length); return 0; }
static int retain(void **context, int device) { *context = (void *)1; return 0; }
static int get_memory(size_t *left, size_t *total) { *left = whole() - taken; *total = whole(); return 0; }
static int get_stream(char **stream, unsigned flags) { *stream = strdup("stream"); return 0; }
static int get_event(char **event, unsigned flags) { *event = strdup("event"); return 0; }
static int record(const char *event, const char *stream) { return *event == 'e' && *stream == 's' ? 0 : 400; } // invalid handle
static int wait_for(const char *stream, const char *event, unsigned flags) { return record(event, stream); }
static int allocate(Address *place, size_t size) {
    if (taken + (int64_t)size > whole()) return 2; // out of memory
    size_t *room = malloc(size + 16);
    room[0] = size;
    taken += size;
    *place = (Address)(room + 2);
    return 0;
}
static int release(Address place) {
    size_t *room = (size_t *)place - 2;
    taken -= room[0];
    free(room);
    return 0;
}
static int allocate_here(void **place, size_t size) { *place = malloc(size); return 0; }
static int release_here(void *place) { free(place); return 0; }
static int copy_there(Address to, const void *from, size_t size, void *stream) { memcpy((void *)to, from, size); return 0; }
static int copy_back(void *to, Address from, size_t size, void *stream) { memcpy(to, (void *)from, size); return 0; }
static int fill(Address to, unsigned char value, size_t size, void *stream) { memset((void *)to, value, size); return 0; }
static int load(void **module, const void *image) { *module = (void *)image; return 0; }
static int get_function(void **function, void *module, const char *name) {
    if (strcmp(name, "sweep_grid")) return 500; // not found
    *function = malloc(1);
    return 0;
}
static int get_function_attribute(int *value, int attribute, void *function) { *value = 100; return 0; }
static int occupancy(int *blocks, void *function, int block, size_t shared) { *blocks = 2; return 0; }

static int launch(void *function, unsigned x, unsigned y, unsigned z, unsigned block, unsigned by, unsigned bz, unsigned shared, void *stream,
                  void **parameters, void **extra) {
#define NUMBERS(i) (*(double **)parameters[i])
#define PLACES(i) (*(int32_t **)parameters[i])
#define COUNT(i) (*(int64_t *)parameters[i])
    const int32_t *states = PLACES(1), *cases = PLACES(8), *rows = PLACES(9);
    const double *rewards = NUMBERS(2), *discounts = NUMBERS(3), *chances = NUMBERS(4), *roots = NUMBERS(5), *targets = NUMBERS(6);
    const double *firsts = NUMBERS(7), *own = NUMBERS(10), *alphas = NUMBERS(11), *lams = NUMBERS(12);
    double *errors = NUMBERS(14);
    const int64_t n = COUNT(15), width = COUNT(16), root_size = COUNT(17), steps = COUNT(18), n_chances = COUNT(19), runs = COUNT(20);
    const int64_t n_alphas = COUNT(21), n_lams = COUNT(22), after = COUNT(23);
    const double discount = *(double *)parameters[24], second = *(double *)parameters[25];
    if (getenv("PRETENDED_FAILURE")) return 700; // an illegal address
    if (getenv("PRETENDED_SILENCE")) return 0;
    for (int64_t run = 0; run < runs; ++run) {
        const int64_t row = rows[run], which = cases[row];
        double sum = states[row * (steps + 1) + steps] + rewards[(row + 1) * steps - 1] + discounts[(row + 1) * steps - 1];
        sum += chances[(row + 1) * 2 * n_chances - 1] + roots[(which + 1) * root_size - 1] + targets[(which + 1) * n - 1];
        sum += firsts[(which + 1) * n - 1] + after + discount + second + width + own[0];
        for (int64_t i = 0; i < n_alphas; ++i)
            for (int64_t j = 0; j < n_lams; ++j) errors[(run * n_alphas + i) * n_lams + j] = sum + 1e3 * alphas[i] + 1e6 * lams[j];
    }
    return 0;
}

static int error_text(int status, const char **text) { *text = status == 2 ? "out of memory" : "an illegal address"; return 0; }

static const struct {
    const char *name;
    void *function;
} KNOWN[] = {
    {"cuDeviceGetCount", count_devices}, {"cuDeviceGet", get_device}, {"cuDeviceGetAttribute", get_attribute},
    {"cuDeviceGetName", get_name}, {"cuDevicePrimaryCtxRetain", retain}, {"cuMemGetInfo", get_memory},
    {"cuStreamCreate", get_stream}, {"cuEventCreate", get_event}, {"cuEventRecord", record}, {"cuStreamWaitEvent", wait_for},
    {"cuMemAlloc", allocate}, {"cuMemFree", release},
    {"cuMemAllocHost", allocate_here}, {"cuMemFreeHost", release_here}, {"cuMemcpyHtoDAsync", copy_there},
    {"cuMemcpyDtoHAsync", copy_back}, {"cuMemsetD8Async", fill}, {"cuModuleLoadData", load}, {"cuModuleGetFunction", get_function},
    {"cuFuncGetAttribute", get_function_attribute}, {"cuOccupancyMaxActiveBlocksPerMultiprocessor", occupancy},
    {"cuLaunchKernel", launch}, {"cuGetErrorName", error_text}, {"cuGetErrorString", error_text},
};

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
    *function = (void *)none;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; ++i)
        if (!strcmp(name, KNOWN[i].name)) *function = KNOWN[i].function;
    if (status) *status = 0;
    return 0;
}
int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, 0);
}
