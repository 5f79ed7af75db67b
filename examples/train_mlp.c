#include <stdio.h>
#include <thimble/thimble.h>

static int failed(void) {
  fprintf(stderr, "%s\n", thimble_last_error());
  return 1;
}

int main(void) {
  thimble_recipe* recipe = NULL;
  thimble_plan* plan = NULL;
  thimble_run* run = NULL;
  thimble_figures figures;
  if (thimble_recipe_new("mlp", &recipe) ||
      thimble_recipe_read(recipe, "batch = 50\nepochs = 3\nmemory = '1500KiB'") ||
      thimble_plan_new(recipe, 1, &plan)) {
    return failed();
  }
  printf("%lld bytes, about %.2f ms a step\n", (long long)thimble_plan_bytes(plan),
         thimble_plan_step_ms(plan));
  if (thimble_run_new(plan, NULL, &run) || thimble_run_train(run, NULL, NULL) ||
      thimble_run_evaluate(run, NULL, NULL, &figures)) {
    return failed();
  }
  printf("%s %.3f after %lld steps\n", figures.metrics[0].name, figures.metrics[0].value,
         (long long)figures.steps);
  thimble_run_free(run);
  thimble_plan_free(plan);
  thimble_recipe_free(recipe);
  return 0;
}
