// Opens a database in the directory that is its argument, writes, reads, and exits with 0 when it
// read what it wrote.

#include <iostream>

#include "basalt/db.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: hello DIRECTORY\n";
    return 2;
  }
  auto db = basalt::DB::Open(argv[1]);
  if (!db) {
    std::cerr << db.error().ToString() << '\n';
    return 1;
  }
  if (basalt::Status put = (*db)->Put("greeting", "hello"); !put.ok()) {
    std::cerr << put.ToString() << '\n';
    return 1;
  }
  auto value = (*db)->Get("greeting");
  if (!value || !*value || **value != "hello") {
    std::cerr << "the greeting that was put is not there\n";
    return 1;
  }
  std::cout << (*value)->view() << '\n';
  return 0;
}
