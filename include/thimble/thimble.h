/* Thimble: trains neural networks inside a memory budget that you choose, byte for byte.
 *
 *   recipe  what to train and how, by the names that the command line has as flags
 *   plan    every byte of a training step, checked, before anything runs
 *   run     the plan in its arena: steps, tests, weights, checkpoints
 *   generator  a trained language model that continues texts, token by token, with a KV cache
 *
 * Functions that can fail return a thimble_code; what went wrong is then a sentence in
 * thimble_last_error(), which belongs to the thread. No C++ exception leaves the library.
 *
 * Threads: any number may use the library at once, each with handles of its own; one handle is used
 * by one thread at a time. A plan and its runs count as one handle. thimble_run_stop() alone may be
 * called at any time, from any thread and from a signal handler. Callbacks are called on the thread
 * that called the library; inside of one, the run that it belongs to may not be used.
 *
 * Texts are UTF-8. Pointers that a function returns belong to the handle that it was asked of and are
 * good until the next call with that handle, unless it says otherwise. */
#ifndef THIMBLE_THIMBLE_H
#define THIMBLE_THIMBLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define THIMBLE_API __attribute__((visibility("default")))

typedef struct thimble_recipe thimble_recipe;
typedef struct thimble_plan thimble_plan;
typedef struct thimble_run thimble_run;
typedef struct thimble_generator thimble_generator;

typedef enum thimble_code {
  THIMBLE_OK = 0,
  THIMBLE_BUG = 1,     /* ours; please report it */
  THIMBLE_MISTAKE = 2, /* of the call, or a file or machine that cannot be used */
  THIMBLE_NO_FIT = 3,  /* no plan fits the budget; thimble_last_needed() says what would */
  THIMBLE_DEVICE = 4,  /* a device that is missing, too small or was lost */
  THIMBLE_MEMORY = 5,  /* the host has not enough */
  THIMBLE_STOPPED =
      6, /* thimble_run_stop() was called; a checkpoint was saved, if the run has a folder */
  THIMBLE_CALLBACK = 7 /* a callback failed; the sentence is what it gave thimble_set_error() */
} thimble_code;

THIMBLE_API const char* thimble_version(void);    /* "0.1.0" */
THIMBLE_API const char* thimble_last_error(void); /* of this thread; "" before the first failure */
THIMBLE_API int64_t thimble_last_needed(void);    /* bytes, after THIMBLE_NO_FIT */
/* For callbacks: why they are about to fail. The text is copied. */
THIMBLE_API void thimble_set_error(const char* sentence);
/* The command line; argv[0] is the program's name. Returns its exit code. */
THIMBLE_API int thimble_main(int argc, char** argv);

/* ---- Recipes --------------------------------------------------------------------------------- */

/* `model`: a name from `thimble list models`, a network's file, or a recipe (.toml); NULL: a setting
 * "model" says it. */
THIMBLE_API thimble_code thimble_recipe_new(const char* model, thimble_recipe** recipe);
THIMBLE_API void thimble_recipe_free(thimble_recipe* recipe);
/* One setting as it is typed: ("batch", "100"), ("memory", "100MiB"), ("augment", "true"). A value
 * that is none fails here; what does not go together fails when it is planned. */
THIMBLE_API thimble_code thimble_recipe_set(thimble_recipe* recipe, const char* name,
                                            const char* value);
/* Many of them: TOML, or a JSON object. */
THIMBLE_API thimble_code thimble_recipe_read(thimble_recipe* recipe, const char* text);
/* The run that goes on in folder `out` keeps what its budget chose when it began. For plans of runs
 * that resume. */
THIMBLE_API thimble_code thimble_recipe_resume(thimble_recipe* recipe, const char* out);

/* ---- Plans ----------------------------------------------------------------------------------- */

/* `with_data`: opens the data set that the recipe names, or else the model's usual one, for a run
 * that reads it. 0: the data set only where one is named, for a look, or a run with a callback. */
THIMBLE_API thimble_code thimble_plan_new(const thimble_recipe* recipe, int32_t with_data,
                                          thimble_plan** plan);
/* The same; `watch` is called several times a second meanwhile, on this thread. Where it returns anything
 * but 0, the search ends with THIMBLE_CALLBACK. */
typedef int32_t (*thimble_watch)(void* context);
THIMBLE_API thimble_code thimble_plan_new_watched(const thimble_recipe* recipe, int32_t with_data,
                                                  thimble_watch watch, void* context,
                                                  thimble_plan** plan);
/* The largest batch, or length of rows (`what`), whose step fits the recipe's memory, everything else as
 * it is; 0: not even 1 does. `by_memory` may be NULL; 0 in it: the model takes no larger one.
 * `watch` may be NULL. */
THIMBLE_API thimble_code thimble_recipe_largest(const thimble_recipe* recipe, const char* what,
                                                thimble_watch watch, void* context, int64_t* value,
                                                int32_t* by_memory);
THIMBLE_API void thimble_plan_free(thimble_plan* plan);
THIMBLE_API int64_t thimble_plan_bytes(const thimble_plan* plan);    /* of the arena */
THIMBLE_API double thimble_plan_step_ms(const thimble_plan* plan);   /* predicted */
THIMBLE_API const char* thimble_plan_tier(const thimble_plan* plan); /* "exact", ... */
/* All that `thimble plan --json` says; the recipe with every default; notes on settings without
 * effect, a line each. Good as long as the plan. */
THIMBLE_API const char* thimble_plan_json(const thimble_plan* plan);
THIMBLE_API const char* thimble_plan_recipe(const thimble_plan* plan);
THIMBLE_API const char* thimble_plan_notes(const thimble_plan* plan);
/* A file for `thimble verify`, and what that does: THIMBLE_MISTAKE where the plan is unsound. */
THIMBLE_API thimble_code thimble_plan_save(const thimble_plan* plan, const char* path);
THIMBLE_API thimble_code thimble_plan_verify(const char* path);

/* ---- Tensors --------------------------------------------------------------------------------- */

typedef enum thimble_dtype {
  THIMBLE_F32 = 0,
  THIMBLE_F64 = 1,
  THIMBLE_F16 = 2,
  THIMBLE_BF16 = 3,
  THIMBLE_I32 = 4,
  THIMBLE_I64 = 5,
  THIMBLE_U8 = 6
} thimble_dtype;

#define THIMBLE_MOST_DIMS 8

/* Row-major, in one piece. */
typedef struct thimble_tensor {
  const char* name; /* good as long as the handle */
  thimble_dtype dtype;
  int32_t rank;
  int64_t shape[THIMBLE_MOST_DIMS];
  int64_t bytes;
  void* data;       /* NULL: not where the host can reach it */
  int32_t row_axis; /* of batches: which axis counts rows */
  int32_t trained;  /* of weights: 0 for running statistics */
  int64_t limit;    /* of batches: whole numbers are in [0, limit); 0: any number */
} thimble_tensor;

/* What the model reads, in batches of the recipe's. */
THIMBLE_API int32_t thimble_plan_field_count(const thimble_plan* plan);
THIMBLE_API thimble_code thimble_plan_field(const thimble_plan* plan, int32_t index,
                                            thimble_tensor* field);

/* ---- Runs ------------------------------------------------------------------------------------ */

/* What a callback is asked to fill: straight into the step's own memory. */
typedef struct thimble_batch {
  int32_t test;  /* 1: records to test on */
  int64_t step;  /* training: of the run, from 0 */
  int64_t batch; /* training: rows of the whole step */
  int64_t first; /* rows of the step, or of the test, before these: a step may take several calls */
  int64_t rows;  /* that there is room for */
  int32_t field_count;
  const thimble_tensor* fields;
  int64_t filled; /* out; `rows` when called. A test may fill fewer, and ends where none are left:
                     0. While training, fewer are an error. */
} thimble_batch;

/* Callbacks return 0, or anything else to fail: the call that they serve ends with THIMBLE_CALLBACK,
 * the run stays as it was before the step, and the last checkpoint is good. */
typedef int32_t (*thimble_fill)(void* context, thimble_batch* batch);
/* Before a step begins, so that failing is always harmless: fetch its rows here. Where a step has
 * several microbatches and thimble_fill fails, the run cannot go on but from a checkpoint. On a GPU
 * the rows of the next step are fetched while one is computed. */
typedef int32_t (*thimble_prepare)(void* context, int64_t step);
/* The learning rate of a step: `*rate` is the schedule's. */
typedef int32_t (*thimble_rate)(void* context, int64_t step, double* rate);

typedef struct thimble_metric {
  const char* name;
  double value;
} thimble_metric;

typedef struct thimble_figures {
  int64_t steps; /* done so far */
  double loss;
  int64_t records; /* of a test: how many; else 0 */
  double rate;     /* of the last step */
  int32_t metric_count;
  const thimble_metric* metrics;
} thimble_figures;

typedef struct thimble_progress {
  int64_t step, steps, steps_per_epoch;
  double rate;
  double rows_per_second;
  double seconds_left;
  thimble_figures train; /* since the epoch began */
  int32_t tested;        /* 1: a test has just been made: */
  thimble_figures test;
} thimble_progress;

/* After every step. Not 0: the run ends like thimble_run_stop(). */
typedef int32_t (*thimble_show)(void* context, const thimble_progress* progress);

typedef enum thimble_resume {
  THIMBLE_START = 0,
  THIMBLE_RESUME = 1, /* from the folder's latest checkpoint */
  THIMBLE_RESUME_OR_START = 2
} thimble_resume;

/* First values of a network from outside, in place of its file's: bytes [first, first + bytes) of the tensor
 * of that name as the network has it, floating numbers as f32. Each tensor is asked for once, from its
 * beginning on, one tensor after the other: what is not its caller's only copy may be given up behind. */
typedef int32_t (*thimble_give)(void* context, const char* name, int64_t first, int64_t bytes,
                                void* to);

/* Set everything to 0, `size` to sizeof(thimble_run_options), then what is wanted. */
typedef struct thimble_run_options {
  size_t size;
  const char* out; /* folder of checkpoints; NULL: none are saved */
  thimble_resume resume;
  int32_t overwrite;   /* 1: start again where `out` has a checkpoint */
  const char* weights; /* a safetensors file to start from */
  void* context;       /* of the callbacks */
  thimble_fill fill;   /* NULL: the plan's data set */
  thimble_prepare prepare;
  thimble_rate rate;
  int64_t steps_per_epoch; /* with `fill`; 0: the run is one epoch of the recipe's `steps` */
  int32_t tests;           /* with `fill`: 1: it has records to test on, too */
  int64_t optimizer_steps; /* made before, where a state that they left is written to the run:
                              Adam's corrections count them */
  thimble_give give;       /* NULL: first values are those of the network's file */
} thimble_run_options;

/* The run keeps what it needs of the plan, which may be freed. */
THIMBLE_API thimble_code thimble_run_new(const thimble_plan* plan,
                                         const thimble_run_options* options, thimble_run** run);
THIMBLE_API void thimble_run_free(thimble_run* run);

/* One step. A run may go beyond the steps of its recipe. */
THIMBLE_API thimble_code thimble_run_step(thimble_run* run, thimble_figures* figures);
/* All steps that are left, with tests and checkpoints as the recipe has them. */
THIMBLE_API thimble_code thimble_run_train(thimble_run* run, thimble_show show, void* context);
/* What `thimble train --json` says, after thimble_run_train(). */
THIMBLE_API const char* thimble_run_result(thimble_run* run);
/* Tests on the run's own records, or on those that `fill` has. */
THIMBLE_API thimble_code thimble_run_evaluate(thimble_run* run, thimble_fill fill, void* context,
                                              thimble_figures* figures);
/* A result of the forward pass in evaluation, of as many test records as `rows`, the first of its rows. Its
 * numbers are good during the call. */
typedef int32_t (*thimble_take)(void* context, const thimble_tensor* output, int64_t rows);
/* Results of all the records that `fill` has, as of a test, batch by batch. Fields that no result depends on
 * (labels) have no `data`. Of the last batch, rows that are no records are to be filled with numbers that a
 * record may have. */
THIMBLE_API thimble_code thimble_run_predict(thimble_run* run, thimble_fill fill, thimble_take take,
                                             void* context);
/* From the next step on, in place of the schedule; below 0: the schedule again. */
THIMBLE_API thimble_code thimble_run_set_rate(thimble_run* run, double rate);
THIMBLE_API void thimble_run_stop(thimble_run* run);
THIMBLE_API int64_t thimble_run_done(const thimble_run* run);  /* steps */
THIMBLE_API int64_t thimble_run_steps(const thimble_run* run); /* of the recipe */

/* Between two steps: memory that holds nothing from one to the next goes back to the system until it is
 * used again. */
THIMBLE_API thimble_code thimble_run_rest(thimble_run* run);

/* Saves a checkpoint now; its folder. */
THIMBLE_API thimble_code thimble_run_save(thimble_run* run, const char** folder);
/* The weights as one safetensors file, for other programs. Of a net that came as an ONNX file, NAME.onnx is that
 * file for inference, with the weights in it. */
THIMBLE_API thimble_code thimble_run_export(thimble_run* run, const char* path);
/* The adapters of a recipe that has them (lora), as a folder that PEFT reads. */
THIMBLE_API thimble_code thimble_run_export_adapters(thimble_run* run, const char* folder);
/* A new folder with the files of their base, the adapters of a checkpoint added, which is saved first. */
THIMBLE_API thimble_code thimble_run_export_merged(thimble_run* run, const char* folder);

/* Weights and running statistics by their names. `data` of a tensor is where they lie: reading and
 * writing there is reading and writing the run. NULL where they are not in the host's memory, or not in
 * that form: then copies are the way, and they always work. Sizes must be those of the tensor. */
THIMBLE_API int32_t thimble_run_weight_count(const thimble_run* run);
THIMBLE_API thimble_code thimble_run_weight(thimble_run* run, int32_t index,
                                            thimble_tensor* weight);
/* Where a weight lies, whatever the order of its axes there: `strides`, in elements, has room for
 * THIMBLE_MOST_DIMS. `*data` is NULL where it is not in the host's memory, or not as numbers of its own. */
THIMBLE_API thimble_code thimble_run_map_weight(thimble_run* run, int32_t index, void** data,
                                                int64_t* strides);
THIMBLE_API thimble_code thimble_run_find_weight(const thimble_run* run, const char* name,
                                                 int32_t* index);
THIMBLE_API thimble_code thimble_run_read_weight(thimble_run* run, int32_t index, void* to,
                                                 int64_t bytes);
THIMBLE_API thimble_code thimble_run_write_weight(thimble_run* run, int32_t index, const void* from,
                                                  int64_t bytes);

/* What the optimizer keeps of a weight from step to step, by the name that it has there: "momentum" of
 * sgd and nesterov (after a first step, that step's gradient), "first_moment" and "second_moment" of
 * adam and adamw. Numbers of the weight's shape, as thimble_run_weight() has it, in f32. */
/* 1: there is such a state. 0: the weight is not trained, the optimizer keeps no such thing, or keeps it
 * in another form. */
THIMBLE_API int32_t thimble_run_has_state(const thimble_run* run, int32_t weight,
                                          const char* state);
THIMBLE_API thimble_code thimble_run_read_state(thimble_run* run, int32_t weight, const char* state,
                                                void* to, int64_t bytes);
THIMBLE_API thimble_code thimble_run_write_state(thimble_run* run, int32_t weight,
                                                 const char* state, const void* from,
                                                 int64_t bytes);

/* ---- Generation ------------------------------------------------------------------------------ */

typedef enum thimble_cache {
  THIMBLE_CACHE_AUTOMATIC = 0, /* a KV cache where it fits the budget, else none */
  THIMBLE_CACHE_ON = 1,        /* THIMBLE_NO_FIT where it does not fit */
  THIMBLE_CACHE_OFF = 2        /* the whole text is recomputed for each token */
} thimble_cache;

/* Set everything to 0, `size` to sizeof(thimble_generator_options), then what is wanted. */
typedef struct thimble_generator_options {
  size_t size;
  const char*
      weights; /* in place of the model's: a safetensors file, or a folder of adapters; NULL: none */
  const char*
      settings;    /* of the recipe, as TOML or a JSON object: "memory" (the budget on the arena),
                           "threads", "device"; of hf:FOLDER "precision" and "frozen", too; NULL: none */
  int64_t context; /* tokens of a text that the model sees at once; 0: the length of its records */
  thimble_cache cache;
} thimble_generator_options;

/* How a token is chosen. All 0 but `size`: always the likeliest. */
typedef struct thimble_sampling {
  size_t size;
  double temperature;  /* what logits are divided by; 0: always the likeliest token */
  int64_t top_k;       /* only so many of the likeliest; 0: all */
  double top_p;        /* only the likeliest whose probabilities add up to this; 0 or 1: all */
  uint64_t seed;       /* the same tokens from the same seed */
  const int32_t* stop; /* tokens that end the text */
  int64_t stop_count;
} thimble_sampling;

/* `from`: the folder of a run, a checkpoint, or "hf:FOLDER", a folder of transformers with weights of its
 * own. `options` may be NULL. THIMBLE_MISTAKE for a model that does not continue texts. */
THIMBLE_API thimble_code thimble_generator_new(const char* from,
                                               const thimble_generator_options* options,
                                               thimble_generator** generator);
THIMBLE_API void thimble_generator_free(thimble_generator* generator);
THIMBLE_API int64_t thimble_generator_bytes(const thimble_generator* generator); /* of the arena */
/* Of keys and values, which the arena includes; 0: there is no cache, and why. */
THIMBLE_API int64_t thimble_generator_cache_bytes(const thimble_generator* generator);
THIMBLE_API const char* thimble_generator_note(const thimble_generator* generator);
THIMBLE_API int64_t thimble_generator_context(const thimble_generator* generator);
THIMBLE_API int64_t thimble_generator_vocabulary(const thimble_generator* generator);
/* Tokens that the cache holds, and that were computed since the generator was made. */
THIMBLE_API int64_t thimble_generator_held(const thimble_generator* generator);
THIMBLE_API int64_t thimble_generator_computed(const thimble_generator* generator);

/* Begins to continue a text: all of it, the next turn of a chat with all turns before. Its beginning, as
 * far as the cache holds it, is not recomputed. A text longer than the context loses its beginning,
 * and leaves room for half a context. `sampling` may be NULL: always the likeliest token. */
THIMBLE_API thimble_code thimble_generator_begin(thimble_generator* generator,
                                                 const int32_t* tokens, int64_t count,
                                                 const thimble_sampling* sampling);
/* The next token; -1: a token of `stop` ended the text, which can be asked again for. */
THIMBLE_API thimble_code thimble_generator_next(thimble_generator* generator, int32_t* token);
/* Logits of the token behind a text, one for each token of the vocabulary; `bytes` of them. */
THIMBLE_API thimble_code thimble_generator_logits(thimble_generator* generator,
                                                  const int32_t* tokens, int64_t count,
                                                  float* logits, int64_t bytes);
/* Empties the cache. */
THIMBLE_API void thimble_generator_forget(thimble_generator* generator);

#ifdef __cplusplus
}
#endif

#endif
