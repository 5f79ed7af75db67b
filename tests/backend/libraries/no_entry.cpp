// A library, but not ours.
extern "C" __attribute__((visibility("default"))) int something_else() { return 1; }
