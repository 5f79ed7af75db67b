// Learns which quarter of a picture is bright, from records that this program makes itself, in as many
// bytes as it is allowed. Exits 0 when it was learnt in them.
#include <cstdio>
#include <thimble/thimble.hpp>

// Record `number`: 8x8 pixels, dark but for one quarter, and which.
int32_t draw(int64_t number, uint8_t* pixels) {
  const auto quarter = static_cast<int32_t>(number * 7919 / 3 % 4);
  for (int64_t i = 0; i < 64; ++i) {
    const bool bright = i / 32 * 2 + i % 8 / 4 == quarter;
    pixels[i] = static_cast<uint8_t>((bright ? 180 : 0) + (number * 31 + i * 7) % 60);
  }
  return quarter;
}

// Straight into the step's own memory: pixels u8 [rows,8,8,1] and label i32 [rows].
void fill(thimble_batch& batch) {
  const auto pixels = thimble::elements<uint8_t>(batch.fields[0]);
  const auto labels = thimble::elements<int32_t>(batch.fields[1]);
  const int64_t begin = batch.test ? 1'000'000 : batch.step * batch.batch;
  if (batch.test && batch.first >= 256) batch.filled = 0;  // there are no more
  for (int64_t row = 0; row < batch.filled; ++row) {
    labels[row] = draw(begin + batch.first + row, &pixels[64 * row]);
  }
}

int main() try {
  thimble::Recipe recipe("mlp");
  recipe.read("image = [8, 8, 1]\nclasses = 4\nbatch = 32\nsteps = 60\nmemory = '1MiB'");
  const thimble::Plan plan(recipe);
  thimble::Run run(plan, {.fill = fill, .tests = true});
  run.train();
  const double accuracy = run.evaluate()["accuracy"];
  std::printf("accuracy %.3f in %lld bytes\n", accuracy, static_cast<long long>(plan.bytes()));
  return plan.bytes() <= 1 << 20 && accuracy > 0.95 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "quarters: %s\n", error.what());
  return 2;
}
